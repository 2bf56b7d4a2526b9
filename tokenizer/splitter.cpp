// Compiling and running the stages.
#include "tokenizer/splitter.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "base/error.h"
#include "tokenizer/digit_stages.h"
#include "tokenizer/regex_spelling.h"
#include "tokenizer/utf8.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace hk::tokenizer {
namespace {

// The JIT's default of 32 KiB overflows on long runs in some expressions. Committed page by page as it is used.
constexpr std::size_t kJitStackStart = 32U << 10;
constexpr std::size_t kJitStackLimit = 8U << 20;
// Steps one match may take when its expression came with a model, and the memory of the interpreter behind the JIT.
constexpr std::uint32_t kMatchLimit = 50'000'000;
constexpr std::uint32_t kHeapLimitKib = 1U << 20;

std::string message_of(int code) {
  PCRE2_UCHAR text[256];
  if (pcre2_get_error_message(code, text, sizeof(text)) < 0) return fmt::format("error {}", code);
  return reinterpret_cast<const char*>(text);
}

}  // namespace

struct SplitScratch::Impl {
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* stack = pcre2_jit_stack_create(kJitStackStart, kJitStackLimit, nullptr);

  Impl() {
    if (data == nullptr || context == nullptr) {
      release();
      throw std::bad_alloc();
    }
    if (stack != nullptr) pcre2_jit_stack_assign(context, nullptr, stack);
    pcre2_set_heap_limit(context, kHeapLimitKib);
  }
  ~Impl() { release(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  void release() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
    pcre2_jit_stack_free(stack);
  }
};

SplitScratch::SplitScratch() : impl_(std::make_unique<Impl>()) {}
SplitScratch::~SplitScratch() = default;

struct Splitter::Expression {
  struct Free {
    void operator()(pcre2_code* compiled) const { pcre2_code_free(compiled); }
  };
  StageKind kind;
  std::string text;
  std::unique_ptr<pcre2_code, Free> code;
  bool jit = false;
  bool limited = false;

  /// Finds the next match at or after `from`. False: no more.
  bool next(std::string_view piece, std::size_t from, SplitScratch::Impl& scratch, std::size_t& begin, std::size_t& end,
            const std::string& origin) const {
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(piece.data());
    int found = PCRE2_ERROR_JIT_STACKLIMIT;
    if (jit)
      found =
          pcre2_jit_match(code.get(), subject, piece.size(), from, PCRE2_NO_UTF_CHECK, scratch.data, scratch.context);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT)  // too deep for its stack: the interpreter works on the heap
      found = pcre2_match(code.get(), subject, piece.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, scratch.data,
                          scratch.context);
    if (found == PCRE2_ERROR_NOMATCH) return false;
    if (found < 0)
      throw Error(fmt::format("{}: the pre-tokenizer expression '{}' cannot be matched against a text of {} bytes: {}",
                              origin, text, piece.size(), message_of(found)));
    const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer(scratch.data);
    begin = offsets[0];
    end = offsets[1];
    if (end < begin || begin < from)  // \K in an expression can do that
      throw Error(
          fmt::format("{}: the pre-tokenizer expression '{}' makes a match that ends before it begins", origin, text));
    return true;
  }
};

Splitter::Splitter(std::span<const Stage> stages, bool limited, std::string_view origin) : origin_(origin) {
  for (const Stage& stage : stages) {
    Expression compiled;
    compiled.kind = stage.kind;
    compiled.limited = limited;
    if (stage.kind == StageKind::kExpression) {
      compiled.text = stage.expression;
      const std::string spelling = pcre2_spelling(stage.expression);
      int code = 0;
      PCRE2_SIZE at = 0;
      compiled.code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(spelling.data()), spelling.size(),
                                        PCRE2_UTF | PCRE2_UCP | PCRE2_NO_AUTO_CAPTURE | PCRE2_NEVER_BACKSLASH_C, &code,
                                        &at, nullptr));
      if (!compiled.code)
        throw Error(fmt::format("{}: the pre-tokenizer expression '{}' is not valid: {} (at byte {} of '{}')", origin,
                                compiled.text, message_of(code), at, spelling));
      compiled.jit = pcre2_jit_compile(compiled.code.get(), PCRE2_JIT_COMPLETE) == 0;
    }
    stages_.push_back(std::move(compiled));
  }
}

Splitter::~Splitter() = default;
Splitter::Splitter(Splitter&&) noexcept = default;

void Splitter::split(std::string_view text, SplitScratch& scratch, TextSink sink) const {
  // Our own expressions are known to be linear; a limit would only refuse long texts.
  const bool limited = !stages_.empty() && stages_.front().limited;
  pcre2_set_match_limit(scratch.impl_->context, limited ? kMatchLimit : 0xFFFFFFFFU);
  if (!text.empty()) run(0, text, scratch, sink);
}

void Splitter::run(std::size_t stage, std::string_view piece, SplitScratch& scratch, TextSink sink) const {
  if (stage == stages_.size()) return sink(piece);
  const Expression& expression = stages_[stage];
  const auto next_stage = [&](std::string_view part) { run(stage + 1, part, scratch, sink); };
  if (expression.kind != StageKind::kExpression) return run_hand_written_stage(expression.kind, piece, next_stage);
  std::size_t done = 0;
  std::size_t from = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
  while (from < piece.size() && expression.next(piece, from, *scratch.impl_, begin, end, origin_)) {
    if (begin > done) next_stage(piece.substr(done, begin - done));
    if (end > begin) next_stage(piece.substr(begin, end - begin));
    done = end;
    from = end;
    if (end == begin) {  // an empty match is a cut; look on from the next character
      if (begin >= piece.size()) break;
      from = begin + std::max<std::size_t>(decode_char(piece.substr(begin)).length, 1);
    }
  }
  if (done < piece.size()) next_stage(piece.substr(done));
}

}  // namespace hk::tokenizer
