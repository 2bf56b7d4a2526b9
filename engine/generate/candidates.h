// The tokens still in the running for the next place, and the steps that remove some of them.
//
// Layer: engine/generate. Starts dense (one logit a token of the vocabulary) and becomes a list with the first removing
// step, so that the usual chain touches 150,000 logits twice and 40 candidates ever after. No step sorts more than it
// must keep. Everything is deterministic; equal logits are ordered by id.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/generate/model.h"

namespace hk::engine {

struct Candidate {
  TokenId id;
  float logit;
};

class Candidates {
 public:
  /// Throws hk::Error when a logit is NaN or +infinity. -infinity is a banned token.
  void reset(std::span<const float> logits);

  bool dense() const { return dense_mode_; }
  std::size_t size() const { return dense_mode_ ? dense_.size() : items_.size(); }
  /// logit of `id` becomes change(logit), when the token is still in the running.
  template <typename Change>
  void change(TokenId id, Change change_logit) {
    if (dense_mode_) {
      if (id >= 0 && static_cast<std::size_t>(id) < dense_.size()) {
        float& logit = dense_[static_cast<std::size_t>(id)];
        logit = change_logit(logit);
      }
      return;
    }
    for (auto& item : items_)
      if (item.id == id) item.logit = change_logit(item.logit);
  }
  /// Throws hk::Error when no token is left that is not banned.
  TokenId largest() const;

  void keep_top_k(std::size_t k);
  void keep_top_n_sigma(double n, std::size_t min_keep);
  void keep_top_p(double p, std::size_t min_keep);
  void keep_min_p(double p, std::size_t min_keep);
  void keep_typical(double p, std::size_t min_keep);
  /// Drops all but the least probable of the tokens with at least `threshold`; nothing when fewer than two reach it.
  void exclude_top_choices(double threshold, std::size_t min_keep);
  /// Keeps tokens with a surprise of at most `bits`, and at least one (Mirostat 2).
  void keep_surprise_up_to(double bits);

  void divide_by_temperature(float temperature);
  /// Temperature between `low` and `high` by the entropy relative to that of equal chances.
  void divide_by_dynamic_temperature(float low, float high, float exponent);

  /// The list, made from the dense form when needed. Banned tokens are never in it.
  std::vector<Candidate>& list();
  /// Probabilities of list() in its order.
  std::span<const double> probabilities();
  /// Index into list() of the token at `unit` in [0, 1) of the cumulated probability.
  std::size_t pick(double unit);
  /// Sorts the list: largest logit first, lowest id on a tie.
  void sort();

 private:
  void keep_logits_from(double smallest, std::size_t min_keep);
  /// Keeps the candidates with the smallest keys_ (lowest id on a tie) until they hold `mass` of the probability.
  void keep_mass(double mass, std::size_t min_keep);
  double entropy();  // of weights_, in nats
  float largest_logit() const;

  bool dense_mode_ = true;
  std::vector<float> dense_;
  std::vector<Candidate> items_;
  std::vector<double> weights_;
  std::vector<double> keys_;  // of keep_mass: distance from what is kept first, >= 0
};

}  // namespace hk::engine
