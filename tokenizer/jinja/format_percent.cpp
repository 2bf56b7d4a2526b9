// The % operator of strings.
#include <fmt/format.h>

#include <cmath>

#include "tokenizer/jinja/failure.h"
#include "tokenizer/jinja/formatting.h"
#include "tokenizer/jinja/integer.h"
#include "tokenizer/jinja/number_format.h"
#include "tokenizer/jinja/operations.h"
#include "tokenizer/jinja/strings.h"
#include "tokenizer/jinja/unicode.h"

namespace hk::tokenizer::jinja {
namespace {

class PercentFormatter {
 public:
  PercentFormatter(const Text& format, const Value& arguments, bool markup)
      : format_(format), bytes_(format.view()), arguments_(arguments), markup_(markup) {}

  Text run() {
    for (std::size_t plain = 0; at_ < bytes_.size(); plain = at_) {
      at_ = std::min(bytes_.find('%', at_), bytes_.size());
      out_.append(format_, plain, at_);
      if (at_ < bytes_.size()) directive();
    }
    const bool mapping = arguments_.is_dict() || arguments_.is_list() || arguments_.is_undefined();
    const std::size_t given = arguments_.is_tuple() ? arguments_.items().size() : 1;
    if (!mapping && used_ < given) fail_type("not all arguments converted during string formatting");
    return std::move(out_);
  }

 private:
  struct Directive {
    bool left = false, plus = false, blank = false, alternate = false, zero = false;
    std::int64_t width = 0, precision = -1;
    char kind = 0;
  };

  char peek() const {
    if (at_ >= bytes_.size()) fail(FailureKind::kValue, "incomplete format");
    return bytes_[at_];
  }

  Value next_argument() {
    if (arguments_.is_tuple()) {
      if (used_ >= arguments_.items().size()) fail_type("not enough arguments for format string");
      return arguments_.items()[used_++];
    }
    if (used_++ > 0) fail_type("not enough arguments for format string");
    return arguments_;
  }

  std::int64_t read_number() {
    if (peek() == '*') {
      ++at_;
      const Value value = next_argument();
      if (!value.is_integral()) fail_type("* wants int");
      if (std::abs(value.as_int()) > kMaxFormatWidth || value.as_int() == INT64_MIN)
        fail(FailureKind::kValue, "width too big");
      return value.as_int();
    }
    std::int64_t number = 0;
    for (; peek() >= '0' && peek() <= '9'; ++at_) {
      number = number * 10 + (peek() - '0');
      if (number > kMaxFormatWidth) fail(FailureKind::kValue, "width too big");
    }
    return number;
  }

  void directive() {
    const std::size_t start = ++at_;
    Directive spec;
    std::optional<Value> named;
    if (peek() == '(') {
      const std::size_t key_start = ++at_;
      for (int open = 1; open > 0; ++at_) {
        if (at_ >= bytes_.size()) fail(FailureKind::kValue, "incomplete format key");
        open += bytes_[at_] == '(' ? 1 : bytes_[at_] == ')' ? -1 : 0;
      }
      if (!arguments_.is_dict()) fail_type("format requires a mapping");
      const std::string_view key = bytes_.substr(key_start, at_ - 1 - key_start);
      const Value* found = arguments_.as_dict().find(key);
      if (found == nullptr) fail(FailureKind::kValue, fmt::format("KeyError: '{}'", key));
      named = *found;
    }
    for (;; ++at_) {
      const char c = peek();
      if (c == '-')
        spec.left = true;
      else if (c == '+')
        spec.plus = true;
      else if (c == ' ')
        spec.blank = true;
      else if (c == '#')
        spec.alternate = true;
      else if (c == '0')
        spec.zero = true;
      else
        break;
    }
    spec.width = read_number();
    if (spec.width < 0) {
      spec.left = true;
      spec.width = -spec.width;
    }
    if (peek() == '.') {
      ++at_;
      spec.precision = std::max<std::int64_t>(0, read_number());
    }
    if (peek() == 'h' || peek() == 'l' || peek() == 'L') ++at_;
    spec.kind = peek();
    const std::size_t kind_at = at_++;
    if (spec.kind == '%' && kind_at == start) return out_.append("%", format_.origin_at(kind_at));
    convert(spec, named ? *named : next_argument());
  }

  void convert(const Directive& spec, const Value& value) {
    switch (spec.kind) {
      case 's':
        return put_text(spec, markup_ ? escaped(value).text() : to_text(value));
      case 'r':
      case 'a':
        return put_text(spec, markup_ ? escape_html(repr(value)) : repr(value));
      case 'c':
        return put_character(spec, value);
      case 'd':
      case 'i':
      case 'u':
        return put_integer(spec, value, 10);
      case 'o':
        return put_integer(spec, value, 8);
      case 'x':
      case 'X':
        return put_integer(spec, value, 16);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        return put_float(spec, value);
      default:
        fail(FailureKind::kValue, fmt::format("unsupported format character '{}'", spec.kind));
    }
  }

  void put_text(const Directive& spec, Text text) {
    if (spec.precision >= 0) text = text.slice(0, offset_of(text.view(), static_cast<std::size_t>(spec.precision)));
    out_.append(pad(text, count_code_points(text.view()), spec.width, " ", spec.left ? Side::kLeft : Side::kRight));
  }

  void put_character(const Directive& spec, const Value& value) {
    if (value.is_string() && value.as_string().length == 1) return put_text(spec, value.text());
    if (!value.is_integral()) fail_type("%c requires int or char");
    if (value.as_int() < 0 || value.as_int() > 0x10FFFF) fail(FailureKind::kOverflow, "%c arg not in range(0x110000)");
    std::string one;
    encode_to(one, static_cast<char32_t>(value.as_int()));
    put_text(spec, Text(one));
  }

  void put_integer(const Directive& spec, const Value& given, unsigned base) {
    require_defined(given);
    Value value = given;
    if (value.is_float() && base == 10) value = integer_from_double(value.as_number());
    if (!is_any_integer(value))
      fail_type(fmt::format("%{} format: {} is required, not {}", spec.kind,
                            base == 10 ? "a real number" : "an integer", type_name(given)));
    std::string digits = integer_digits(value, base, spec.kind == 'X');
    if (spec.precision > static_cast<std::int64_t>(digits.size()))
      digits.insert(0, static_cast<std::size_t>(spec.precision) - digits.size(), '0');
    std::string_view prefix;
    if (spec.alternate && base == 8) prefix = "0o";
    if (spec.alternate && base == 16) prefix = spec.kind == 'X' ? "0X" : "0x";
    put_number(spec, is_negative(value), prefix, digits);
  }

  void put_float(const Directive& spec, const Value& value) {
    require_defined(value);
    if (!is_any_number(value)) fail_type(fmt::format("must be real number, not {}", type_name(value)));
    const double number = number_of(value);
    put_number(spec, is_negative(Value::number(number)), "",
               float_digits(number, spec.kind, spec.precision, spec.alternate));
  }

  void put_number(const Directive& spec, bool negative, std::string_view prefix, const std::string& digits) {
    const std::string_view sign = negative ? "-" : spec.plus ? "+" : spec.blank ? " " : "";
    const std::size_t size = sign.size() + prefix.size() + digits.size(), width = static_cast<std::size_t>(spec.width);
    const std::size_t missing = width > size ? width - size : 0;
    const bool zeros = spec.zero && !spec.left;
    if (!spec.left && !zeros) out_.append_repeated(" ", missing, Origin::kTemplate);
    out_.append(sign, Origin::kTemplate);
    out_.append(prefix, Origin::kTemplate);
    if (zeros) out_.append_repeated("0", missing, Origin::kTemplate);
    out_.append(digits, Origin::kTemplate);
    if (spec.left) out_.append_repeated(" ", missing, Origin::kTemplate);
  }

  const Text& format_;
  std::string_view bytes_;
  const Value& arguments_;
  bool markup_;
  std::size_t at_ = 0, used_ = 0;
  Text out_;
};

}  // namespace

Text format_percent(const Text& format, const Value& arguments, bool markup) {
  return PercentFormatter(format, arguments, markup).run();
}

}  // namespace hk::tokenizer::jinja
