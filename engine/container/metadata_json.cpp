// Json values of the metadata, as events of nlohmann's parser.
#include "engine/container/metadata_json.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

namespace hk::engine {
namespace {

using Json = nlohmann::json;

/// Receives the events of one value. `Elements` is told of each scalar directly inside the outermost array and answers
/// with "" or why it does not want it.
template <typename Elements>
class Handler {
 public:
  explicit Handler(Elements& elements) : elements_(elements) {}

  bool null() {
    return scalar([&] { return elements_.other("null"); });
  }
  bool boolean(bool value) {
    return scalar([&] { return elements_.integer(value ? 1 : 0); });
  }
  bool number_integer(Json::number_integer_t value) {
    return scalar([&] { return elements_.integer(value); });
  }
  bool number_unsigned(Json::number_unsigned_t value) {
    return scalar([&] {
      return value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())
                 ? elements_.number(static_cast<double>(value))
                 : elements_.integer(static_cast<std::int64_t>(value));
    });
  }
  bool number_float(Json::number_float_t value, const std::string&) {
    return scalar([&] { return elements_.number(value); });
  }
  bool string(std::string& value) {
    return scalar([&] { return elements_.string(value); });
  }
  bool binary(Json::binary_t&) { return refuse("binary data is no json"); }
  bool key(std::string&) { return true; }
  bool start_object(std::size_t) { return enter("an object"); }
  bool end_object() { return leave(); }
  bool start_array(std::size_t) { return depth_ == 0 ? enter_outermost() : enter("an array"); }
  bool end_array() { return leave(); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) {
    return refuse(fmt::format("it is no valid json: error at byte {}", position));
  }

  const std::string& problem() const { return problem_; }

 private:
  template <typename Give>
  bool scalar(Give give) {
    if (depth_ > 1 || (depth_ == 1 && !in_array_)) return true;
    if (depth_ == 0) return Elements::kWantsArray ? refuse("it is a single value; an array was expected") : true;
    return accept(give());
  }
  bool accept(const std::string& why_not) {
    if (!why_not.empty()) return refuse(fmt::format("element {} {}", index_, why_not));
    ++index_;
    return true;
  }
  bool enter_outermost() {
    in_array_ = true;
    depth_ = 1;
    return true;
  }
  bool enter(const char* what) {
    if (depth_ == 0 && Elements::kWantsArray) return refuse(fmt::format("it is {}; an array was expected", what));
    if (depth_ == 1 && in_array_ && !accept(elements_.other(what))) return false;
    if (++depth_ > kMaxJsonDepth) return refuse(fmt::format("it is nested deeper than {} levels", kMaxJsonDepth));
    return true;
  }
  bool leave() {
    --depth_;
    return true;
  }
  bool refuse(std::string why) {
    if (problem_.empty()) problem_ = std::move(why);
    return false;
  }

  Elements& elements_;
  std::string problem_;
  std::size_t depth_ = 0;
  std::size_t index_ = 0;
  bool in_array_ = false;
};

/// Takes anything: for checking and counting.
struct AnyElements {
  static constexpr bool kWantsArray = false;
  std::size_t count = 0;
  std::string take() { return ++count, ""; }
  std::string other(const char*) { return take(); }
  std::string integer(std::int64_t) { return take(); }
  std::string number(double) { return take(); }
  std::string string(std::string&) { return take(); }
};

struct CountedElements : AnyElements {
  static constexpr bool kWantsArray = true;
};

struct StringElements {
  static constexpr bool kWantsArray = true;
  std::vector<std::string>& out;
  static std::string other(const char* what) { return fmt::format("is {}; a string was expected", what); }
  static std::string integer(std::int64_t) { return other("a number"); }
  static std::string number(double) { return other("a number"); }
  std::string string(std::string& value) { return out.push_back(std::move(value)), ""; }
};

struct IntegerElements {
  static constexpr bool kWantsArray = true;
  std::vector<std::int32_t>& out;
  static std::string other(const char* what) { return fmt::format("is {}; an integer was expected", what); }
  std::string integer(std::int64_t value) {
    if (value < std::numeric_limits<std::int32_t>::min() || value > std::numeric_limits<std::int32_t>::max())
      return fmt::format("is {}, outside the 32-bit range", value);
    out.push_back(static_cast<std::int32_t>(value));
    return "";
  }
  static std::string number(double value) { return fmt::format("is {}; a 32-bit integer was expected", value); }
  static std::string string(std::string&) { return other("a string"); }
};

struct FloatElements {
  static constexpr bool kWantsArray = true;
  std::vector<float>& out;
  static std::string other(const char* what) { return fmt::format("is {}; a number was expected", what); }
  std::string integer(std::int64_t value) { return out.push_back(static_cast<float>(value)), ""; }
  std::string number(double value) {
    // Beyond the f32 range a conversion would be undefined before it were useful.
    if (std::abs(value) > static_cast<double>(std::numeric_limits<float>::max()))
      return fmt::format("is {}, outside the f32 range", value);
    out.push_back(static_cast<float>(value));
    return "";
  }
  static std::string string(std::string&) { return other("a string"); }
};

template <typename Elements>
std::string parse(std::string_view text, Elements& elements) {
  Handler<Elements> handler(elements);
  const bool complete = Json::sax_parse(text.begin(), text.end(), &handler);
  if (!handler.problem().empty()) return handler.problem();
  return complete ? "" : "it is no valid json";
}

}  // namespace

std::string check_json(std::string_view text) {
  AnyElements elements;
  return parse(text, elements);
}

std::string read_json_strings(std::string_view text, std::vector<std::string>& out) {
  StringElements elements{out};
  return parse(text, elements);
}

std::string read_json_integers(std::string_view text, std::vector<std::int32_t>& out) {
  IntegerElements elements{out};
  return parse(text, elements);
}

std::string read_json_floats(std::string_view text, std::vector<float>& out) {
  FloatElements elements{out};
  return parse(text, elements);
}

std::string count_json_elements(std::string_view text, std::size_t& count) {
  CountedElements elements;
  auto problem = parse(text, elements);
  count = elements.count;
  return problem;
}

char first_json_character(std::string_view text) {
  const auto at = text.find_first_not_of(" \t\r\n");
  return at == text.npos ? '\0' : text[at];
}

}  // namespace hk::engine
