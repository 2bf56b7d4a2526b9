// Names of the failure kinds.
#include "tokenizer/jinja/failure.h"

namespace hk::tokenizer::jinja {

const char* failure_name(FailureKind kind) {
  switch (kind) {
    case FailureKind::kSyntax:
      return "TemplateSyntaxError";
    case FailureKind::kRuntime:
      return "TemplateRuntimeError";
    case FailureKind::kUndefined:
      return "UndefinedError";
    case FailureKind::kType:
      return "TypeError";
    case FailureKind::kValue:
      return "ValueError";
    case FailureKind::kZeroDivision:
      return "ZeroDivisionError";
    case FailureKind::kOverflow:
      return "OverflowError";
    case FailureKind::kFilterArgument:
      return "FilterArgumentError";
    case FailureKind::kSecurity:
      return "SecurityError";
    case FailureKind::kLimit:
      return "LimitError";
    case FailureKind::kRaised:
      return "raise_exception";
  }
  return "Error";
}

}  // namespace hk::tokenizer::jinja
