// Macro: a callable made by {% macro %} or {% call %}.
//
// Layer: tokenizer/jinja.
#pragma once

#include <memory>

#include "tokenizer/jinja/ast.h"
#include "tokenizer/jinja/scope.h"
#include "tokenizer/jinja/value.h"

namespace hk::tokenizer::jinja {

class Interpreter;

class Macro : public Object {
 public:
  Macro(Interpreter& interpreter, std::shared_ptr<const MacroSyntax> syntax, std::shared_ptr<Scope> closure)
      : interpreter_(interpreter), syntax_(std::move(syntax)), closure_(std::move(closure)) {}

  std::string type_name() const override { return "Macro"; }
  Text repr() const override;
  std::optional<Value> attribute(std::string_view name) const override;
  bool callable() const override { return true; }
  Value call(Runtime& runtime, Arguments& arguments) override;
  void release() override { closure_.reset(); }

 private:
  Interpreter& interpreter_;
  std::shared_ptr<const MacroSyntax> syntax_;
  std::shared_ptr<Scope> closure_;
};

}  // namespace hk::tokenizer::jinja
