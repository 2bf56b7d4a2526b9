// Layout and upkeep of state files (see state_file.h).
//
// Header [kHeaderBytes]: Header, then the sizes of the groups. Then the state that is no page: WholeHead and bytes.
// Then one record a page: PageHead, 256 token ids, a checksum a group (0: the group has no such page), and the groups'
// bytes. Records are aligned, so that a group's bytes are copied fast.
#include "engine/generate/state_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "base/checksum.h"
#include "base/error.h"
#include "base/write_all.h"
#include "kernels/kernels.h"

namespace hk::engine {
namespace {

using kernels::kKvPage;

constexpr std::uint64_t kMagic = 0x3154415453'4B48;  // "HKSTAT1"
constexpr std::uint64_t kAlignment = 4096;           // a page of memory
constexpr std::size_t kMostGroups = 4096;            // more layers than any model has

std::uint64_t aligned(std::uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

struct Header {
  std::uint64_t magic = kMagic;
  std::uint64_t identity = 0;
  std::uint64_t length = 0;  // positions
  std::uint64_t groups = 0;
  std::uint64_t whole_bytes = 0;
  std::uint64_t checksum = 0;  // of this with 0 in its place, and of the sizes
};

struct WholeHead {
  std::uint64_t position = 0;
  std::uint64_t checksum = 0;
};

struct PageHead {
  std::uint64_t count = 0;     // positions
  std::uint64_t checksum = 0;  // of count, ids and the groups' checksums
};

std::uint64_t header_checksum(Header header, std::span<const std::uint64_t> sizes) {
  header.checksum = 0;
  return checksum(std::as_bytes(sizes), checksum(std::as_bytes(std::span(&header, 1))));
}

std::vector<StatePart> parts_of(const Session& session) {
  const KeepableState* state = session.keepable();
  return state == nullptr ? std::vector<StatePart>{} : state->state_parts();
}

/// Checksum of bytes that is never 0.
std::uint64_t present(std::span<const std::byte> bytes) { return checksum(bytes) | 1; }

}  // namespace

/// Where everything lies.
struct StateFile::Layout {
  std::vector<std::uint64_t> sizes;  // of a page of each group
  std::uint64_t whole_bytes = 0;

  std::uint64_t header_bytes() const { return aligned(sizeof(Header) + 8 * sizes.size()); }
  std::uint64_t whole_offset() const { return header_bytes(); }
  std::uint64_t pages_offset() const {
    return whole_offset() + (whole_bytes == 0 ? 0 : aligned(sizeof(WholeHead) + whole_bytes));
  }
  /// Head, ids and checksums.
  std::uint64_t record_head_bytes() const {
    return aligned(sizeof(PageHead) + sizeof(TokenId) * kKvPage + 8 * sizes.size());
  }
  std::uint64_t record_bytes() const {
    std::uint64_t bytes = record_head_bytes();
    for (const std::uint64_t size : sizes) bytes += aligned(size);
    return bytes;
  }
  std::uint64_t record(std::size_t page) const { return pages_offset() + page * record_bytes(); }
  std::uint64_t group_offset(std::size_t group) const {
    std::uint64_t bytes = record_head_bytes();
    for (std::size_t i = 0; i < group; ++i) bytes += aligned(sizes[i]);
    return bytes;
  }

  static Layout of(std::span<const StatePart> parts) {
    Layout layout;
    for (const StatePart& part : parts) {
      if (part.page == StatePart::kWhole) {
        layout.whole_bytes = part.bytes.size();
        continue;
      }
      if (layout.sizes.size() <= part.group) layout.sizes.resize(part.group + 1);
      layout.sizes[part.group] = part.bytes.size();
    }
    return layout;
  }
};

void StateFile::open_file(bool create) {
  if (file_ >= 0) return;
  file_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC | (create ? O_CREAT : 0), 0600);
  if (file_ < 0 && create)
    throw Error(fmt::format("{}: cannot be written: {}", path_, std::strerror(errno)), ErrorKind::kResource);
}

void StateFile::close() {
  if (file_ >= 0) ::close(file_);
  file_ = -1;
}

void StateFile::remove() {
  close();
  ::unlink(path_.c_str());
  saved_.clear();
  saved_sizes_.clear();
}

void StateFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  if (write_all_at(file_, offset, bytes) < bytes.size())
    throw Error(fmt::format("{}: cannot be written: {}", path_, std::strerror(errno)), ErrorKind::kResource);
}

void StateFile::write_header(const Layout& layout, std::size_t length) {
  Header header;
  header.identity = identity_;
  header.length = length;
  header.groups = layout.sizes.size();
  header.whole_bytes = layout.whole_bytes;
  header.checksum = header_checksum(header, layout.sizes);
  std::vector<std::byte> bytes(sizeof header + 8 * layout.sizes.size());
  std::memcpy(bytes.data(), &header, sizeof header);
  if (!layout.sizes.empty()) std::memcpy(bytes.data() + sizeof header, layout.sizes.data(), 8 * layout.sizes.size());
  write_at(0, bytes);
}

void StateFile::write_page(const Layout& layout, std::size_t page, std::span<const TokenId> ids,
                           std::span<const StatePart> parts) {
  std::vector<TokenId> padded(kKvPage, 0);
  std::copy(ids.begin(), ids.end(), padded.begin());
  std::vector<std::uint64_t> sums(layout.sizes.size(), 0);
  for (const StatePart& part : parts) {
    if (part.page != page) continue;
    write_at(layout.record(page) + layout.group_offset(part.group), part.bytes);
    sums[part.group] = present(part.bytes);
  }
  PageHead head;
  head.count = ids.size();
  head.checksum = checksum(std::as_bytes(std::span(sums)), checksum(std::as_bytes(std::span(padded)), head.count));
  std::vector<std::byte> bytes(sizeof head + sizeof(TokenId) * kKvPage + 8 * sums.size());
  std::memcpy(bytes.data(), &head, sizeof head);
  std::memcpy(bytes.data() + sizeof head, padded.data(), sizeof(TokenId) * kKvPage);
  if (!sums.empty()) std::memcpy(bytes.data() + sizeof head + sizeof(TokenId) * kKvPage, sums.data(), 8 * sums.size());
  write_at(layout.record(page), bytes);
}

std::uint64_t StateFile::size_after_save(const Session& session) const {
  const auto layout = Layout::of(parts_of(session));
  return layout.record((session.history().size() + kKvPage - 1) / kKvPage);
}

void StateFile::save(const Session& session) {
  const auto history = session.history();
  const auto parts = parts_of(session);
  if (history.empty() || parts.empty()) {
    if (!saved_.empty() || file_ >= 0) remove();
    return;
  }
  const auto layout = Layout::of(parts);
  open_file(true);
  if (layout.sizes != saved_sizes_) {
    if (::ftruncate(file_, 0) != 0)
      throw Error(fmt::format("{}: cannot be written: {}", path_, std::strerror(errno)), ErrorKind::kResource);
    saved_.clear();
    saved_sizes_ = layout.sizes;
  }
  const auto page_ids = [](std::span<const TokenId> ids, std::size_t page) {
    const std::size_t begin = std::min(ids.size(), page * kKvPage);
    return ids.subspan(begin, std::min(kKvPage, ids.size() - begin));
  };
  const std::size_t pages = (history.size() + kKvPage - 1) / kKvPage;
  for (std::size_t page = 0; page < pages; ++page) {
    const auto ids = page_ids(history, page);
    if (!std::ranges::equal(ids, page_ids(saved_, page))) write_page(layout, page, ids, parts);
  }
  for (const StatePart& part : parts) {
    if (part.page != StatePart::kWhole) continue;
    const WholeHead head{history.size(), present(part.bytes)};
    write_at(layout.whole_offset(), std::as_bytes(std::span(&head, 1)));
    write_at(layout.whole_offset() + sizeof head, part.bytes);
  }
  write_header(layout, history.size());
  saved_.assign(history.begin(), history.end());
}

namespace {

/// A file mapped for reading.
class Mapping {
 public:
  explicit Mapping(int file) {
    struct stat status {};
    if (::fstat(file, &status) != 0 || status.st_size <= 0) return;
    size_ = static_cast<std::size_t>(status.st_size);
    void* at = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
    if (at != MAP_FAILED) data_ = static_cast<const std::byte*>(at);
  }
  ~Mapping() {
    if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  /// Empty when the file does not reach that far.
  std::span<const std::byte> at(std::uint64_t offset, std::uint64_t bytes) const {
    if (data_ == nullptr || offset > size_ || bytes > size_ - offset) return {};
    return {data_ + offset, static_cast<std::size_t>(bytes)};
  }
  template <typename T>
  std::optional<T> read(std::uint64_t offset) const {
    const auto bytes = at(offset, sizeof(T));
    if (bytes.empty()) return std::nullopt;
    T value;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

template <typename T>
std::vector<T> copy_of(std::span<const std::byte> bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

}  // namespace

StateFile::Loaded StateFile::load(Session& session) {
  open_file(false);
  if (file_ < 0) return {};
  const Mapping map(file_);
  const auto header = map.read<Header>(0);
  if (!header || header->magic != kMagic || header->groups > kMostGroups)
    return {0, fmt::format("{} is damaged: the conversation is read again", path_)};
  const auto size_bytes = map.at(sizeof(Header), 8 * header->groups);
  Layout layout;
  layout.sizes = copy_of<std::uint64_t>(size_bytes);
  layout.whole_bytes = header->whole_bytes;
  if (layout.sizes.size() != header->groups || header->checksum != header_checksum(*header, layout.sizes))
    return {0, fmt::format("{} is damaged: the conversation is read again", path_)};
  if (header->identity != identity_)
    return {0, fmt::format("{} is of another model, context size, cache type or CPU: the conversation is read again",
                           path_)};
  if (header->length > session.capacity())
    return {0, fmt::format("{} holds {} positions, the context only {}: the conversation is read again", path_,
                           header->length, session.capacity())};

  std::vector<TokenId> ids;
  std::vector<StatePart> parts;
  const auto vocab = static_cast<TokenId>(session.model().info().vocab_size);
  const auto take_page = [&](std::size_t page, std::size_t count) {
    const std::uint64_t record = layout.record(page);
    const auto head = map.read<PageHead>(record);
    const auto id_bytes = map.at(record + sizeof(PageHead), sizeof(TokenId) * kKvPage);
    const auto sum_bytes = map.at(record + sizeof(PageHead) + sizeof(TokenId) * kKvPage, 8 * layout.sizes.size());
    if (!head || head->count < count || head->count > kKvPage || id_bytes.empty()) return false;
    if (head->checksum != checksum(sum_bytes, checksum(id_bytes, head->count))) return false;
    const auto sums = copy_of<std::uint64_t>(sum_bytes);
    const auto page_ids = copy_of<TokenId>(id_bytes);
    std::vector<StatePart> found;
    for (std::size_t group = 0; group < sums.size(); ++group) {
      if (sums[group] == 0) continue;
      const auto bytes = map.at(record + layout.group_offset(group), layout.sizes[group]);
      if (bytes.empty() || present(bytes) != sums[group]) return false;
      found.push_back({static_cast<std::uint32_t>(group), static_cast<std::uint32_t>(page), bytes});
    }
    for (std::size_t i = 0; i < count; ++i)
      if (page_ids[i] < 0 || page_ids[i] >= vocab) return false;
    ids.insert(ids.end(), page_ids.begin(), page_ids.begin() + static_cast<std::ptrdiff_t>(count));
    parts.insert(parts.end(), found.begin(), found.end());
    return true;
  };
  const auto length = static_cast<std::size_t>(header->length);
  bool whole = true;
  for (std::size_t page = 0; whole && page * kKvPage < length; ++page)
    whole = take_page(page, std::min(kKvPage, length - page * kKvPage));
  if (layout.whole_bytes != 0) {
    const auto head = map.read<WholeHead>(layout.whole_offset());
    const auto bytes = map.at(layout.whole_offset() + sizeof(WholeHead), layout.whole_bytes);
    if (!head || bytes.empty() || head->position != ids.size() || present(bytes) != head->checksum) {
      ids.clear();
    } else {
      parts.push_back({0, StatePart::kWhole, bytes});
    }
  }
  if (ids.empty() || !session.restore(ids, parts))
    return {0, length == 0 ? "" : fmt::format("{} is damaged: the conversation is read again", path_)};
  saved_ = ids;
  saved_sizes_ = layout.sizes;
  if (whole) return {ids.size(), ""};
  return {ids.size(), fmt::format("{} is damaged after {} positions: the rest is read again", path_, ids.size())};
}

}  // namespace hk::engine
