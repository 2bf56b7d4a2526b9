// Text: UTF-8 bytes that remember which of them come from the caller's data and which from the template.
//
// Layer: tokenizer/jinja. A user may spell "<|im_end|>" in a message; only the one the template writes may become the
// control token. So every operation on strings keeps the origin of each byte, as a sorted list of offsets at which the
// origin changes; nearly all strings have one origin and an empty list, so this costs a flag. Where an operation mixes
// (a number of bytes made from several), the result counts as data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hk::tokenizer::jinja {

enum class Origin : bool { kTemplate = false, kData = true };

/// A run of bytes of one origin.
struct TextRun {
  std::size_t begin, end;
  Origin origin;
};

inline constexpr std::size_t kMaxTextBytes = std::size_t{1} << 26;  ///< longer strings are refused

class Text {
 public:
  Text() = default;
  explicit Text(std::string bytes, Origin origin = Origin::kTemplate) : bytes_(std::move(bytes)), first_(origin) {}

  std::string_view view() const { return bytes_; }
  std::size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }

  Origin origin_at(std::size_t byte) const;
  /// True when at least one byte is data.
  bool holds_data() const { return !bytes_.empty() && (first_ == Origin::kData || !flips_.empty()); }
  /// kData when at least one byte is data: the origin of something computed from the whole.
  Origin blended() const { return holds_data() ? Origin::kData : Origin::kTemplate; }
  std::vector<TextRun> runs() const;

  void append(std::string_view bytes, Origin origin);
  void append(const Text& other) { append(other, 0, other.size()); }
  void append(const Text& other, std::size_t begin, std::size_t end);  ///< bytes [begin, end) of other
  void append_repeated(std::string_view bytes, std::size_t count, Origin origin);
  Text slice(std::size_t begin, std::size_t end) const;
  /// The same bytes, all of one origin.
  Text with_origin(Origin origin) const { return Text(bytes_, origin); }
  std::string take() && { return std::move(bytes_); }

 private:
  void reserve_more(std::size_t count);
  Origin last() const {
    return (flips_.size() % 2 == 0) == (first_ == Origin::kData) ? Origin::kData : Origin::kTemplate;
  }

  std::string bytes_;
  Origin first_ = Origin::kTemplate;
  std::vector<std::size_t> flips_;  // ascending, inside (0, size)
};

// --- code points -----------------------------------------------------------------------------------------------------

struct CodePoint {
  char32_t value;      ///< for an invalid byte b: 0xDC00 + b, which no valid text decodes to
  std::uint32_t size;  ///< bytes
};

/// Decodes at `at` (< size). Surrogates written as three bytes are accepted: string literals may hold them.
CodePoint decode_at(std::string_view bytes, std::size_t at);
/// Start of the code point that ends at `end` (> 0).
std::size_t previous_start(std::string_view bytes, std::size_t end);
void encode_to(std::string& out, char32_t value);
std::size_t count_code_points(std::string_view bytes);
/// Byte offset of code point `index`, counted from byte `from`; the size when there are fewer.
std::size_t offset_of(std::string_view bytes, std::size_t index, std::size_t from = 0);

// --- searching, linear even for hostile needles ----------------------------------------------------------------------

inline constexpr std::size_t kNotFound = static_cast<std::size_t>(-1);
std::size_t find_text(std::string_view haystack, std::string_view needle, std::size_t from = 0);
std::size_t find_last_text(std::string_view haystack, std::string_view needle);

}  // namespace hk::tokenizer::jinja
