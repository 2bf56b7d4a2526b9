// JSON in through a SAX handler (the parser keeps its own stack), out as Python writes it.
#include "tokenizer/jinja/json.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "tokenizer/jinja/failure.h"
#include "tokenizer/jinja/integer.h"
#include "tokenizer/jinja/operations.h"
#include "tokenizer/jinja/sorting.h"

namespace hk::tokenizer::jinja {
namespace {

constexpr std::size_t kMaxJsonDepth = 200;  // below kMaxValueDepth: templates wrap values in lists of their own

class ValueBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit ValueBuilder(Origin origin) : origin_(origin) {}

  bool null() override { return put(Value()); }
  bool boolean(bool value) override { return put(Value::boolean(value)); }
  bool number_integer(number_integer_t value) override { return put(Value::integer(value)); }
  bool number_unsigned(number_unsigned_t value) override {
    return put(integer_from_digits(fmt::format("{}", value), 10));
  }
  bool number_float(number_float_t value, const string_t& digits) override {
    if (digits.find_first_of(".eE") != string_t::npos) return put(Value::number(value));
    const bool negative = digits.front() == '-';
    return put(integer_from_digits(std::string_view(digits).substr(negative), 10, negative));
  }
  bool string(string_t& value) override { return put(Value::string(Text(std::move(value), origin_))); }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override { return open(true); }
  bool key(string_t& name) override {
    levels_.back().key = Value::string(Text(std::move(name), origin_));
    return true;
  }
  bool end_object() override {
    Value value = Value::dict(std::move(levels_.back().members));
    levels_.pop_back();
    return put(std::move(value));
  }
  bool start_array(std::size_t) override { return open(false); }
  bool end_array() override {
    Value value = Value::list(std::move(levels_.back().items));
    levels_.pop_back();
    return put(std::move(value));
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    std::string reason = error.what();
    if (const auto end = reason.find("] "); end != std::string::npos) reason.erase(0, end + 2);
    problem_ = fmt::format("not JSON at byte {}: {}", position, reason);
    return false;
  }

  Value take() { return std::move(result_); }
  const std::string& problem() const { return problem_; }

 private:
  struct Level {
    bool object;
    std::vector<Value> items;
    Dict members;
    Value key;
  };

  bool open(bool object) {
    if (levels_.size() >= kMaxJsonDepth) {
      problem_ = fmt::format("JSON is nested more than {} levels deep", kMaxJsonDepth);
      return false;
    }
    levels_.push_back({object, {}, {}, {}});
    return true;
  }

  bool put(Value value) {
    if (levels_.empty()) {
      result_ = std::move(value);
    } else if (levels_.back().object) {
      levels_.back().members.set(std::move(levels_.back().key), std::move(value));
    } else {
      levels_.back().items.push_back(std::move(value));
    }
    return true;
  }

  Origin origin_;
  std::vector<Level> levels_;
  Value result_;
  std::string problem_;
};

class Writer {
 public:
  explicit Writer(const JsonStyle& style) : style_(style) {}

  void write(const Value& value, std::size_t level) {
    charge_steps(1);
    switch (value.type()) {
      case Value::Type::kNone:
        return put("null");
      case Value::Type::kBool:
        return put(value.as_bool() ? "true" : "false");
      case Value::Type::kInt:
        return put(integer_text(value));
      case Value::Type::kFloat:
        return put(number(value.as_number()));
      case Value::Type::kString:
        return write_string(value.text());
      case Value::Type::kList:
      case Value::Type::kTuple:
        return write_array(value.items(), level);
      case Value::Type::kDict:
        return write_object(value.as_dict(), level);
      default:
        break;
    }
    if (!is_big(value)) fail_type(fmt::format("Object of type {} is not JSON serializable", type_name(value)));
    put(integer_text(value));
  }

  Text take() { return out_.holds_data() ? out_.with_origin(Origin::kData) : std::move(out_); }

 private:
  void put(std::string_view text) { out_.append(text, Origin::kTemplate); }

  static std::string number(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return float_text(value);
  }

  void write_string(const Text& text) {
    const std::string_view bytes = text.view();
    std::string out = "\"";
    for (std::size_t at = 0; at < bytes.size();) {
      const CodePoint point = decode_at(bytes, at);
      switch (point.value) {
        case '"':
          out += "\\\"";
          break;
        case '\\':
          out += "\\\\";
          break;
        case '\n':
          out += "\\n";
          break;
        case '\r':
          out += "\\r";
          break;
        case '\t':
          out += "\\t";
          break;
        case '\f':
          out += "\\f";
          break;
        case '\b':
          out += "\\b";
          break;
        default:
          if (point.value < 0x20 || (style_.ensure_ascii && point.value > 0x7E)) {
            escape(out, point.value);
          } else {
            out += bytes.substr(at, point.size);
          }
      }
      at += point.size;
    }
    out += '"';
    out_.append(out, text.blended());
  }

  static void escape(std::string& out, char32_t value) {
    const auto unit = [&](std::uint32_t code) { out += fmt::format("\\u{:04x}", code); };
    if (value < 0x10000) return unit(value);
    unit(0xD800 + ((value - 0x10000) >> 10));
    unit(0xDC00 + ((value - 0x10000) & 0x3FF));
  }

  void new_line(std::size_t level) {
    if (!style_.indent) return;
    put("\n");
    out_.append_repeated(*style_.indent, level, Origin::kTemplate);
  }

  void write_array(const std::vector<Value>& items, std::size_t level) {
    if (items.empty()) return put("[]");
    put("[");
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) put(style_.item_separator);
      new_line(level + 1);
      write(items[i], level + 1);
    }
    new_line(level);
    put("]");
  }

  void write_key(const Value& key) {
    if (key.is_string()) return write_string(key.text());
    if (key.is_none()) return put("\"null\"");
    if (key.is_bool()) return put(key.as_bool() ? "\"true\"" : "\"false\"");
    if (key.is_float()) return put(fmt::format("\"{}\"", number(key.as_number())));
    if (is_any_integer(key)) return put(fmt::format("\"{}\"", integer_text(key)));
    fail_type(fmt::format("keys must be str, int, float, bool or None, not {}", type_name(key)));
  }

  void write_object(const Dict& dict, std::size_t level) {
    if (dict.empty()) return put("{}");
    const auto& entries = dict.entries();
    std::vector<std::size_t> order;
    if (style_.sort_keys)
      order = sorted_order(entries.size(),
                           [&](std::size_t a, std::size_t b) { return less(entries[a].first, entries[b].first); });
    put("{");
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) put(style_.item_separator);
      new_line(level + 1);
      write_key(entries[order.empty() ? i : order[i]].first);
      put(style_.key_separator);
      write(entries[order.empty() ? i : order[i]].second, level + 1);
    }
    new_line(level);
    put("}");
  }

  const JsonStyle& style_;
  Text out_;
};

}  // namespace

Value parse_json(std::string_view text, Origin origin) {
  ValueBuilder builder(origin);
  try {
    if (nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) return builder.take();
  } catch (const Failure& failure) {
    throw Error(failure.what());
  }
  throw Error(builder.problem());
}

Text dump_json(const Value& value, const JsonStyle& style) {
  Writer writer(style);
  writer.write(value, 0);
  return writer.take();
}

}  // namespace hk::tokenizer::jinja
