// The syntax tree: expressions and statements of a parsed template.
//
// Layer: tokenizer/jinja. Built by the parser, checked by the checker, walked by the interpreter; read-only afterwards,
// so that one template can be rendered from several threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/jinja/operations.h"
#include "tokenizer/jinja/value.h"

namespace hk::tokenizer::jinja {

struct FilterEntry;
struct TestEntry;

struct Expression;
using ExpressionPointer = std::unique_ptr<Expression>;

enum class ExpressionKind : std::uint8_t {
  kConstant,   ///< value
  kName,       ///< name
  kList,       ///< operands
  kTuple,      ///< operands
  kDict,       ///< operands: key, value, key, value, ...
  kAttribute,  ///< operands[0] . name
  kItem,       ///< operands[0] [ operands[1] ]
  kSlice,      ///< operands[0] [ operands[1] : operands[2] : operands[3] ], null where left out
  kCall,       ///< operands[0] ( arguments )
  kFilter,     ///< operands[0] | name ( arguments ); no operand in filter blocks
  kTest,       ///< operands[0] is name ( arguments )
  kNegate,
  kPositive,
  kNot,      ///< operands[0]
  kBinary,   ///< operands[0] binary operands[1]
  kConcat,   ///< operands joined as text
  kCompare,  ///< operands[0] comparisons[0] operands[1] comparisons[1] ...
  kAnd,
  kOr,            ///< operands[0], operands[1]
  kConditional,   ///< operands: condition, then, else (null when left out)
  kNamespaceRef,  ///< name . attribute, only as target of set
};

/// Arguments of a call, filter or test.
struct CallSyntax {
  std::vector<ExpressionPointer> positional;
  std::vector<std::pair<std::string, ExpressionPointer>> named;
  ExpressionPointer spread;        ///< *expression
  ExpressionPointer spread_named;  ///< **expression
};

struct Expression {
  ExpressionKind kind;
  BinaryOperator binary = BinaryOperator::kAdd;
  std::uint32_t offset = 0;
  std::uint32_t depth = 1;  ///< of the tree below; limited, so that walking it cannot overflow the stack
  std::string name;
  std::string attribute;
  Value value;
  std::vector<ExpressionPointer> operands;
  std::vector<Comparison> comparisons;
  CallSyntax call;
  const FilterEntry* filter = nullptr;  ///< null when there is no such filter: an error if ever reached
  const TestEntry* test = nullptr;
};

struct Statement;
using StatementPointer = std::unique_ptr<Statement>;
using Block = std::vector<StatementPointer>;

enum class StatementKind : std::uint8_t {
  kText,         ///< text
  kPrint,        ///< expressions
  kIf,           ///< expressions[i] guards blocks[i]; a last block without guard is else
  kFor,          ///< target, expressions: iterable, filter or null; blocks: body, else
  kSet,          ///< target = expressions[0]
  kSetBlock,     ///< target, expressions[0]: filter or null; blocks[0]
  kMacro,        ///< name, macro
  kCall,         ///< expressions[0]: the call; macro: the caller block
  kFilterBlock,  ///< expressions[0]: chain of filters; blocks[0]
  kWith,         ///< targets = expressions; blocks[0]
  kAutoescape,   ///< expressions[0]; blocks[0]
  kScope,        ///< blocks[0]: generation
  kBlock,        ///< name; blocks[0]
  kBreak,
  kContinue,
  kLoader,  ///< include, import, from, extends: name says which; fails when reached
};

/// A macro or the body of a call block.
struct MacroSyntax {
  std::string name;
  std::vector<std::string> parameters;
  std::vector<ExpressionPointer> defaults;  ///< of the last parameters
  Block body;
  bool uses_caller = false, uses_varargs = false, uses_kwargs = false;
};

struct Statement {
  StatementKind kind;
  bool recursive = false;  ///< of for
  bool scoped = false;     ///< of block: sees the variables around it
  std::uint32_t offset = 0;
  std::uint32_t depth = 1;
  std::string name;
  Value text;
  ExpressionPointer target;
  std::vector<ExpressionPointer> targets;
  std::vector<ExpressionPointer> expressions;
  std::vector<Block> blocks;
  std::shared_ptr<MacroSyntax> macro;
};

/// A parsed template.
struct Program {
  std::string source;  ///< normalized; for line and column
  Block body;
};

inline constexpr std::uint32_t kMaxSyntaxDepth = 400;  ///< of nested expressions and statements

}  // namespace hk::tokenizer::jinja
