// Texts with fields of a JSON object in them: "Q: {question}\nA:".
//
// Layer: cli/batch.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace hk::cli {

class FieldTemplate {
 public:
  /// {name} is a field, {a.b.0} goes into objects and arrays, {{ and }} are braces. `escapes`: \n, \t and \\ are what
  /// they are in most languages, because a shell passes them on as they are typed. Throws hk::Error (usage) that names
  /// `option`.
  FieldTemplate(std::string_view text, std::string_view option, bool escapes);

  /// Strings as they are, other values as JSON. Throws hk::Error that names a missing field.
  std::string fill(const nlohmann::ordered_json& object) const;

 private:
  struct Part {
    std::string text;
    std::vector<std::string> field;  // not empty: the way to the value
  };
  std::vector<Part> parts_;
};

}  // namespace hk::cli
