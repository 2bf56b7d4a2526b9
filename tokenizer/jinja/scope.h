// Scope: variables of one block, and the blocks around it.
//
// Layer: tokenizer/jinja. `if` shares the scope around it; loops, macros, call and filter blocks have their own. A
// macro keeps the scope it was defined in and sees later changes there.
#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/jinja/value.h"

namespace hk::tokenizer::jinja {

struct Scope {
  explicit Scope(std::shared_ptr<Scope> parent_) : parent(std::move(parent_)) {}

  /// Names live in the syntax tree or are literals. Few per scope, so a search is fastest.
  const Value* find(std::string_view name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->parent.get())
      for (const auto& variable : scope->variables)
        if (variable.first == name) return &variable.second;
    return nullptr;
  }
  void set(std::string_view name, Value value) {
    for (auto& variable : variables)
      if (variable.first == name) {
        variable.second = std::move(value);
        return;
      }
    variables.emplace_back(name, std::move(value));
  }

  std::shared_ptr<Scope> parent;
  std::vector<std::pair<std::string_view, Value>> variables;
};

}  // namespace hk::tokenizer::jinja
