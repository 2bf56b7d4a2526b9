// Failure: what went wrong inside a template, before the place in the template is known.
//
// Layer: tokenizer/jinja. Values, filters and methods throw it without a position; ChatTemplate adds template, line and
// column and turns it into TemplateError, the only exception a caller sees.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

namespace hk::tokenizer::jinja {

enum class FailureKind {
  kSyntax,          ///< the source is not a template
  kRuntime,         ///< legal source, refused action (assigning an attribute, unknown filter reached at run time)
  kUndefined,       ///< an undefined value was looked into
  kType,            ///< operation on unsuitable types
  kValue,           ///< suitable type, unsuitable value
  kZeroDivision,    ///< division or modulo by zero
  kOverflow,        ///< a number left its range
  kFilterArgument,  ///< a filter was called with unsuitable arguments
  kSecurity,        ///< the sandbox refused
  kLimit,           ///< steps, depth, memory or output exhausted
  kRaised,          ///< raise_exception of the template
};

/// Name of the kind as template authors know it from Jinja2: "TypeError", "UndefinedError", ...
const char* failure_name(FailureKind kind);

class Failure : public std::runtime_error {
 public:
  Failure(FailureKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  FailureKind kind() const { return kind_; }

 private:
  FailureKind kind_;
};

[[noreturn]] inline void fail(FailureKind kind, const std::string& message) { throw Failure(kind, message); }
[[noreturn]] inline void fail_type(const std::string& message) { throw Failure(FailureKind::kType, message); }

/// A failure whose place is known: thrown while the source is read.
class SyntaxFailure : public Failure {
 public:
  SyntaxFailure(const std::string& message, std::size_t offset)
      : Failure(FailureKind::kSyntax, message), offset_(offset) {}
  std::size_t offset() const { return offset_; }

 private:
  std::size_t offset_;
};

}  // namespace hk::tokenizer::jinja
