// Runtime: what filters, tests and methods may ask of the rendering that runs them.
//
// Layer: tokenizer/jinja.
#pragma once

#include <string_view>

#include "tokenizer/jinja/clock.h"
#include "tokenizer/jinja/value.h"

namespace hk::tokenizer::jinja {

class Runtime {
 public:
  virtual ~Runtime() = default;

  /// Calls a function, method or macro; counts the depth.
  virtual Value call(const Value& callee, Arguments& arguments) = 0;
  virtual Value apply_filter(std::string_view name, const Value& input, Arguments& arguments) = 0;
  virtual bool apply_test(std::string_view name, const Value& input, Arguments& arguments) = 0;
  virtual const Clock& clock() const = 0;
  /// Keeps an object that can be part of a cycle or a long chain until the rendering ends, when it is emptied.
  virtual void adopt(std::shared_ptr<Object> object) = 0;

  bool autoescape = false;
};

}  // namespace hk::tokenizer::jinja
