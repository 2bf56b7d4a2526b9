// The tokens still in the running for the next place, and the steps that remove some of them.
//
// Layer: engine/generate. Starts dense (one logit a token of the vocabulary) and becomes a list with the first step
// that leaves few: the usual chain touches 150,000 logits twice and 40 candidates ever after. No step sorts more than
// lies at its border, and none keeps a probability for each token of the vocabulary. Everything is deterministic; equal
// logits are ordered by id.
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
  struct Best {
    float logit;
    double surprise;  ///< in nats
  };
  /// Throws hk::Error when no token is left that is not banned.
  Best best_token() const;
  /// Keeps tokens with a surprise of at most `nats`, and at least one (Mirostat 2). `best` is the best_token().
  void keep_surprise_up_to(double nats, const Best& best);

  void divide_by_temperature(float temperature);
  /// Temperature between `low` and `high` by the entropy relative to that of equal chances.
  void divide_by_dynamic_temperature(float low, float high, float exponent);

  /// The list, made from the dense form when needed. Banned tokens are never in it.
  std::vector<Candidate>& list();
  /// The `count` largest, best first; fewer when there are no more.
  std::vector<Candidate> best(std::size_t count) const;
  /// Tokens that are not banned.
  std::size_t count() const;
  /// The token at `unit` in [0, 1) of the cumulated probability.
  Candidate pick(double unit) const;

 private:
  /// Sums over all tokens, relative to the best one: of the weights e^-d, and of d times weight, where d is the
  /// distance from the largest logit.
  struct Mass {
    double total = 0;
    double distance = 0;
  };
  std::size_t places() const { return dense_mode_ ? dense_.size() : items_.size(); }
  Candidate at(std::size_t place) const {
    return dense_mode_ ? Candidate{static_cast<TokenId>(place), dense_[place]} : items_[place];
  }
  /// Calls visit(logits) for pieces of the form at hand, in its order.
  template <typename Visit>
  void for_pieces(Visit visit) const;
  float largest_logit() const;
  std::size_t count_from(float least) const;
  Mass mass(bool with_distance) const;
  void keep_logits_from(double smallest, std::size_t min_keep);
  void keep_part(double p, const Mass& all, double centre, std::size_t min_keep);

  bool dense_mode_ = true;
  std::vector<float> dense_;
  std::vector<Candidate> items_;
};

}  // namespace hk::engine
