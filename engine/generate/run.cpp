// From sampled tokens to an answer (see run.h). The rules are those of generator.cpp.
#include "engine/generate/run.h"

namespace hk::engine {

void Run::emit(const std::string& piece) {
  if (piece.empty()) return;
  answer().text += piece;
  if (owner->request.on_text) owner->request.on_text(index, piece);
}

bool Run::accept(TokenId id, std::size_t capacity, const tokenizer::Tokenizer& tokenizer) {
  const Request& request = owner->request;
  Answer& result = answer();
  ++owner->response.generated_tokens;
  if (request.stop_at_eog && tokenizer.is_eog(id)) {
    result.end_token = id;
    finish(FinishReason::kEndOfGeneration);
    return true;
  }
  result.tokens.push_back(id);
  tokens.push_back(id);
  emit(text->push(id));
  if (text->stopped()) {
    finish(FinishReason::kStopString);
  } else if (request.max_tokens && result.tokens.size() >= *request.max_tokens) {
    finish(FinishReason::kLength);
  } else if (tokens.size() > capacity) {
    finish(FinishReason::kContextFull);
  } else {
    return false;
  }
  return true;
}

void Run::finish(FinishReason reason) {
  Answer& result = answer();
  emit(text->finish());
  result.reason = reason;
  if (reason == FinishReason::kStopString) result.stop = text->stop();
}

}  // namespace hk::engine
