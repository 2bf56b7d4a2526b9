// A model whose logits are a hash of the tokens so far, and a tokenizer with a handful of pieces: generation without
// weights.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/generate/model.h"
#include "engine/generate/random.h"
#include "tokenizer/tokenizer.h"

namespace hk::test {

using engine::TokenId;

class ToySequence : public engine::Sequence {
 public:
  ToySequence(std::size_t capacity, std::size_t step) : capacity_(capacity), step_(step) {}
  std::size_t length() const override { return tokens.size(); }
  std::size_t capacity() const override { return capacity_; }
  std::uint64_t state_bytes() const override { return tokens.size(); }
  std::size_t truncate(std::size_t length) override {
    if (length < tokens.size()) tokens.resize(length / step_ * step_);
    return tokens.size();
  }
  std::unique_ptr<engine::Sequence> fork() const override { return std::make_unique<ToySequence>(*this); }

  std::vector<TokenId> tokens;

 private:
  std::size_t capacity_;
  std::size_t step_;  // truncation goes back to a multiple of this, like a model with recurrent state
};

class ToyModel : public engine::Model {
 public:
  explicit ToyModel(std::size_t vocab_size, std::size_t truncation_step = 1) : step_(truncation_step) {
    info_.vocab_size = vocab_size;
    info_.context_length = 64;
  }
  const engine::ModelInfo& info() const override { return info_; }
  std::unique_ptr<engine::Sequence> new_sequence(const engine::SequenceOptions& options) override {
    return std::make_unique<ToySequence>(options.context_length, step_);
  }
  /// Pages of 256 positions, a byte each.
  std::uint64_t state_bytes(const engine::SequenceOptions&, std::size_t positions) const override {
    return (positions + 255) / 256 * 256;
  }
  std::uint64_t scratch_bytes() const override { return 0; }

  std::span<const float> forward(std::span<const engine::BatchItem> items,
                                 const engine::ForwardControl& control) override {
    logits_.clear();
    for (const auto& item : items) {
      const auto& sequence = static_cast<ToySequence&>(*item.sequence);
      if (item.tokens.size() > sequence.capacity() - sequence.length()) throw Error("toy: context full");
      for (const TokenId id : item.tokens)
        if (id == poison) throw Error("toy: poison");
    }
    if (control.cancelled && control.cancelled()) return {};
    if (out_of_memory > 0 && out_of_memory-- > 0) throw Error("toy: out of memory", ErrorKind::kResource);
    std::size_t rows = 0;
    for (const auto& item : items) {
      auto& sequence = static_cast<ToySequence&>(*item.sequence);
      rows += item.tokens.size();
      calls.push_back(item.tokens.size());
      for (const TokenId id : item.tokens) {
        sequence.tokens.push_back(id);
        if (item.logits != engine::LogitsFor::kAll) continue;
        const auto row = row_for(sequence.tokens);
        logits_.insert(logits_.end(), row.begin(), row.end());
      }
      if (control.progress) control.progress(item.tokens.size(), item.tokens.size());
      if (item.logits == engine::LogitsFor::kLast) {
        const auto row = row_for(sequence.tokens);
        logits_.insert(logits_.end(), row.begin(), row.end());
      }
    }
    most_rows = std::max(most_rows, rows);
    return logits_;
  }

  /// Logits after `tokens`. When a script is set, its next token wins by far.
  std::vector<float> row_for(const std::vector<TokenId>& tokens) const {
    std::uint64_t hash = 17;
    for (const TokenId id : tokens) hash = engine::RandomStream(hash ^ static_cast<std::uint64_t>(id)).next();
    engine::RandomStream stream(hash);
    std::vector<float> row(info_.vocab_size);
    for (auto& logit : row) logit = static_cast<float>(8 * stream.next_unit() - 4);
    if (tokens.size() >= script_start && tokens.size() - script_start < script.size())
      row[static_cast<std::size_t>(script[tokens.size() - script_start])] = 100;
    return row;
  }

  std::vector<TokenId> script;  ///< greedy answer after `script_start` tokens
  std::size_t script_start = 0;
  std::vector<std::size_t> calls;  ///< tokens of each item of each forward call
  std::size_t most_rows = 0;       ///< tokens of the largest batch
  TokenId poison = -1;             ///< a batch with this token fails
  int out_of_memory = 0;           ///< so many calls fail for want of memory

 private:
  engine::ModelInfo info_;
  std::size_t step_;
  std::vector<float> logits_;
};

/// Token i is pieces[i]; control tokens are those of the form <...>; </s> ends.
class ToyTokenizer : public tokenizer::Tokenizer {
 public:
  explicit ToyTokenizer(std::vector<std::string> pieces) : pieces_(std::move(pieces)) {
    for (std::size_t i = 0; i < pieces_.size(); ++i)
      if (pieces_[i] == "</s>") eog_.push_back(static_cast<TokenId>(i));
  }
  std::vector<TokenId> encode(std::string_view text, tokenizer::EncodeOptions) const override {
    std::vector<TokenId> ids;
    while (!text.empty()) {
      std::size_t best = pieces_.size();
      for (std::size_t i = 0; i < pieces_.size(); ++i)
        if (text.starts_with(pieces_[i]) && (best == pieces_.size() || pieces_[i].size() > pieces_[best].size()))
          best = i;
      if (best == pieces_.size()) throw Error("toy: no token for \"" + std::string(text) + "\"");
      ids.push_back(static_cast<TokenId>(best));
      text.remove_prefix(pieces_[best].size());
    }
    return ids;
  }
  std::string piece(TokenId id) const override { return pieces_[static_cast<std::size_t>(id)]; }
  std::string decode(std::span<const TokenId> ids, bool skip_special) const override {
    std::string text;
    for (const TokenId id : ids)
      if (!skip_special || !is_control(id)) text += piece(id);
    return text;
  }
  std::size_t size() const override { return pieces_.size(); }
  std::string_view token_text(TokenId id) const override { return pieces_[static_cast<std::size_t>(id)]; }
  bool is_control(TokenId id) const override { return token_text(id).size() > 2 && token_text(id).starts_with('<'); }
  std::optional<TokenId> find_special(std::string_view) const override { return std::nullopt; }
  std::optional<TokenId> bos() const override { return std::nullopt; }
  std::optional<TokenId> eos() const override { return eog_.empty() ? std::nullopt : std::optional(eog_[0]); }
  bool adds_bos() const override { return false; }
  bool adds_space_prefix() const override { return true; }
  std::span<const TokenId> eog_ids() const override { return eog_; }

 private:
  std::vector<std::string> pieces_;
  std::vector<TokenId> eog_;
};

}  // namespace hk::test
