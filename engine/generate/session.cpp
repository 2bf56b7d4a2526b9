// Session: prefix re-use and chunked reading.
#include "engine/generate/session.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace hk::engine {

Session::Session(Model& model, const SequenceOptions& options)
    : model_(model), sequence_(model.new_sequence(options)) {}

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
