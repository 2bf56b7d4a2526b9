// Calling macros: binding of arguments, defaults, varargs, kwargs and caller.
#include "tokenizer/jinja/macro.h"

#include <fmt/format.h>

#include <algorithm>

#include "tokenizer/jinja/failure.h"
#include "tokenizer/jinja/interpreter.h"

namespace hk::tokenizer::jinja {
namespace {

/// Removes and gives the keyword argument, if it is there.
std::optional<Value> take(Arguments& arguments, std::string_view name) {
  const auto found = std::find_if(arguments.named.begin(), arguments.named.end(),
                                  [&](const auto& each) { return each.first == name; });
  if (found == arguments.named.end()) return std::nullopt;
  std::optional<Value> value(std::move(found->second));
  arguments.named.erase(found);
  return value;
}

}  // namespace

Text Macro::repr() const { return Text(fmt::format("<Macro '{}'>", syntax_->name)); }

std::optional<Value> Macro::attribute(std::string_view name) const {
  if (name == "name") return Value::string(syntax_->name);
  if (name == "arguments") {
    std::vector<Value> names;
    for (const auto& parameter : syntax_->parameters) names.push_back(Value::string(parameter));
    return Value::tuple(std::move(names));
  }
  if (name == "caller") return Value::boolean(syntax_->uses_caller);
  if (name == "catch_kwargs") return Value::boolean(syntax_->uses_kwargs);
  if (name == "catch_varargs") return Value::boolean(syntax_->uses_varargs);
  return std::nullopt;
}

Value Macro::call(Runtime&, Arguments& arguments) { return interpreter_.run_macro(*syntax_, closure_, arguments); }

Value Interpreter::run_macro(const MacroSyntax& macro, const ScopePointer& closure, Arguments& arguments) {
  const Depth depth(*this);
  const auto scope = std::make_shared<Scope>(closure);
  const std::size_t count = macro.parameters.size(), given = std::min(count, arguments.positional.size());
  std::vector<std::optional<Value>> bound(count);
  for (std::size_t i = 0; i < given; ++i) bound[i] = arguments.positional[i];
  for (std::size_t i = given; i < count; ++i) bound[i] = take(arguments, macro.parameters[i]);

  const bool explicit_caller =
      std::find(macro.parameters.begin(), macro.parameters.end(), "caller") != macro.parameters.end();
  if (macro.uses_caller && !explicit_caller) {
    std::optional<Value> caller = take(arguments, "caller");
    if (!caller || caller->is_none()) caller = Value::undefined({.hint = "No caller defined", .name = {}, .owner = {}});
    scope->set("caller", *caller);
  }
  if (macro.uses_kwargs) {
    Dict rest;
    for (auto& [name, value] : arguments.named) rest.set(name, std::move(value));
    scope->set("kwargs", Value::dict(std::move(rest)));
  } else if (!arguments.named.empty()) {
    const std::string& name = arguments.named.front().first;
    if (name == "caller")
      fail_type(fmt::format("macro '{}' was invoked with two values for the special caller argument", macro.name));
    fail_type(fmt::format("macro '{}' takes no keyword argument '{}'", macro.name, name));
  }
  if (macro.uses_varargs) {
    scope->set("varargs", Value::tuple({arguments.positional.begin() + static_cast<std::ptrdiff_t>(given),
                                        arguments.positional.end()}));
  } else if (arguments.positional.size() > count) {
    fail_type(fmt::format("macro '{}' takes not more than {} argument(s)", macro.name, count));
  }

  const std::size_t first_default = count - macro.defaults.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (!bound[i]) {
      // A default is evaluated at the call and may use the arguments before it.
      bound[i] = i >= first_default
                     ? evaluate(*macro.defaults[i - first_default], scope)
                     : Value::undefined({.hint = fmt::format("parameter '{}' was not provided", macro.parameters[i]),
                                         .name = {},
                                         .owner = {}});
    }
    scope->set(macro.parameters[i], std::move(*bound[i]));
  }
  Flow flow;
  return capture(macro.body, scope, flow);
}

}  // namespace hk::tokenizer::jinja
