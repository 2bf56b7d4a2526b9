// Ranges, dict views, namespaces, bound methods, bytes.
#include "tokenizer/jinja/objects.h"

#include <fmt/format.h>

#include "base/utf8.h"
#include "tokenizer/jinja/failure.h"
#include "tokenizer/jinja/operations.h"

namespace hk::tokenizer::jinja {
namespace {

/// Runs an index up or down and asks for the value at it.
template <typename At>
class IndexIterator : public Iterator {
 public:
  IndexIterator(std::int64_t count, bool reversed, At at) : count_(count), reversed_(reversed), at_(std::move(at)) {}
  bool next(Value& out) override {
    if (index_ >= count_) return false;
    out = at_(reversed_ ? count_ - 1 - index_ : index_);
    ++index_;
    return true;
  }

 private:
  std::int64_t index_ = 0, count_;
  bool reversed_;
  At at_;
};

template <typename At>
std::unique_ptr<Iterator> by_index(std::int64_t count, bool reversed, At at) {
  return std::make_unique<IndexIterator<At>>(count, reversed, std::move(at));
}

}  // namespace

std::int64_t RangeSpan::count() const {
  if (step > 0 ? start >= stop : start <= stop) return 0;
  // Unsigned, so that the distance between any two ends is exact.
  const auto distance = step > 0 ? static_cast<std::uint64_t>(stop) - static_cast<std::uint64_t>(start)
                                 : static_cast<std::uint64_t>(start) - static_cast<std::uint64_t>(stop);
  const std::uint64_t stride = step > 0 ? static_cast<std::uint64_t>(step) : 0 - static_cast<std::uint64_t>(step);
  const std::uint64_t count = (distance - 1) / stride + 1;
  return static_cast<std::int64_t>(std::min<std::uint64_t>(count, INT64_MAX));
}

Text Range::repr() const {
  return Text(span_.step == 1 ? fmt::format("range({}, {})", span_.start, span_.stop)
                              : fmt::format("range({}, {}, {})", span_.start, span_.stop, span_.step));
}

std::optional<Value> Range::attribute(std::string_view name) const {
  if (name == "start") return Value::integer(span_.start);
  if (name == "stop") return Value::integer(span_.stop);
  if (name == "step") return Value::integer(span_.step);
  return std::nullopt;
}

std::unique_ptr<Iterator> Range::iterate() {
  return by_index(count(), false, [span = span_](std::int64_t i) { return span.at(i); });
}
std::unique_ptr<Iterator> Range::iterate_reversed() {
  return by_index(count(), true, [span = span_](std::int64_t i) { return span.at(i); });
}

std::optional<Value> Range::item(const Value& key) const {
  if (!key.is_integral()) return std::nullopt;
  std::int64_t index = key.as_int();
  if (index < 0) index += count();
  return index < 0 || index >= count() ? std::nullopt : std::optional(at(index));
}

bool Range::same_as(const Range& other) const {
  const std::int64_t n = count();
  return n == other.count() &&
         (n == 0 || (span_.start == other.span_.start && (n == 1 || span_.step == other.span_.step)));
}

std::string DictView::type_name() const {
  return part_ == Part::kKeys ? "dict_keys" : part_ == Part::kValues ? "dict_values" : "dict_items";
}

Text DictView::repr() const {
  Text out(fmt::format("{}(", type_name()));
  std::vector<Value> items;
  Value item;
  for (const auto& [key, value] : dict().entries())
    items.push_back(part_ == Part::kKeys ? key : part_ == Part::kValues ? value : Value::tuple({key, value}));
  out.append(jinja::repr(Value::list(std::move(items))));
  out.append(")", Origin::kTemplate);
  return out;
}

namespace {
std::unique_ptr<Iterator> iterate_view(const Value& dict, DictView::Part part, bool reversed) {
  return by_index(static_cast<std::int64_t>(dict.as_dict().size()), reversed, [dict, part](std::int64_t i) {
    const auto& [key, value] = dict.as_dict().entries()[static_cast<std::size_t>(i)];
    if (part == DictView::Part::kKeys) return key;
    return part == DictView::Part::kValues ? value : Value::tuple({key, value});
  });
}
}  // namespace

std::unique_ptr<Iterator> DictView::iterate() { return iterate_view(dict_, part_, false); }
std::unique_ptr<Iterator> DictView::iterate_reversed() { return iterate_view(dict_, part_, true); }
std::optional<std::int64_t> DictView::length() { return static_cast<std::int64_t>(dict().size()); }

Text Namespace::repr() const {
  Text out("<Namespace ");
  out.append(jinja::repr(Value::dict(attributes_)));
  out.append(">", Origin::kTemplate);
  return out;
}

std::optional<Value> Namespace::attribute(std::string_view name) const {
  const Value* found = attributes_.find(name);
  return found == nullptr ? std::nullopt : std::optional(*found);
}

Text BoundMethod::repr() const {
  return Text(fmt::format("<built-in method {} of {} object>", name_, jinja::type_name(self_)));
}

Text Bytes::repr() const {
  const std::string_view bytes = bytes_.view();
  const char quote =
      bytes.find('\'') != std::string_view::npos && bytes.find('"') == std::string_view::npos ? '"' : '\'';
  std::string out = "b";
  out += quote;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == quote || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte >= 0x7F) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  out += quote;
  return Text(std::move(out), bytes_.blended());
}

std::optional<Value> Bytes::attribute(std::string_view name) const {
  if (name != "decode") return std::nullopt;
  const auto self = std::const_pointer_cast<Object>(shared_from_this());
  return Value::object(std::make_shared<BoundMethod>(Value::object(self), "decode",
                                                     [](Runtime&, const Value& bytes, Arguments&) -> Value {
                                                       const Text& text = bytes.object_as<Bytes>()->bytes();
                                                       if (!is_valid_utf8(text.view()))
                                                         fail(FailureKind::kValue, "bytes are not UTF-8");
                                                       return Value::string(text);
                                                     }));
}

}  // namespace hk::tokenizer::jinja
