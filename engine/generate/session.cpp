// Session: prefix re-use and chunked reading.
#include "engine/generate/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace hk::engine {

Session::Session(Model& model, const SequenceOptions& options)
    : model_(model), sequence_(model.new_sequence(options)) {}

Session::Session(const Session& other, std::unique_ptr<Sequence> sequence)
    : model_(other.model_), sequence_(std::move(sequence)), history_(other.history_) {}

std::unique_ptr<Session> Session::fork() const {
  return std::unique_ptr<Session>(new Session(*this, sequence_->fork()));
}

bool Session::restore(std::vector<TokenId> history, std::span<const StatePart> parts) {
  auto* state = dynamic_cast<KeepableState*>(sequence_.get());
  if (state == nullptr || !history_.empty() || history.size() > capacity()) return false;
  if (!state->load_state(history.size(), parts)) return false;
  history_ = std::move(history);
  return true;
}

void Session::truncate(std::size_t length) {
  if (length >= history_.size()) return;
  // A recurrent model may have to go further back; what it forgot has to be read again.
  history_.resize(std::min(length, sequence_->truncate(length)));
}

std::size_t Session::reuse(std::span<const TokenId> prompt) {
  const std::size_t limit = prompt.empty() ? 0 : prompt.size() - 1;
  std::size_t same = 0;
  while (same < std::min(limit, history_.size()) && prompt[same] == history_[same]) ++same;
  truncate(same);
  return history_.size();
}

std::span<const float> Session::append(std::span<const TokenId> tokens, const ForwardControl& control,
                                       std::size_t chunk) {
  if (tokens.size() > room())
    throw Error(fmt::format("{} tokens do not fit: the context holds {}, of which {} are taken", tokens.size(),
                            capacity(), history_.size()));
  std::span<const float> logits;
  const std::size_t total = tokens.size();
  for (std::size_t done = 0; done < total;) {
    if (control.cancelled && control.cancelled()) return {};
    const auto part = tokens.subspan(done, std::min(std::max<std::size_t>(chunk, 1), total - done));
    const bool last = done + part.size() == total;
    const BatchItem item{sequence_.get(), part, last ? LogitsFor::kLast : LogitsFor::kNone};
    ForwardControl inner{control.cancelled, {}};
    if (control.progress)
      inner.progress = [&control, done, total](std::size_t now, std::size_t) { control.progress(done + now, total); };
    const std::size_t before = sequence_->length();
    logits = model_.forward({&item, 1}, inner);
    if (sequence_->length() == before) return {};  // cancelled: the state is as before the call
    history_.insert(history_.end(), part.begin(), part.end());
    done += part.size();
  }
  return logits;
}

}  // namespace hk::engine
