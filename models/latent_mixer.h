// Multi-head latent attention as a part of a layer.
//
// Layer: models. The stored form decides what is cached, for prompts and single tokens alike, so that results do not
// depend on how tokens are cut into calls.
#pragma once

#include "models/attend.h"
#include "models/stage.h"

namespace hk::models {

class LatentMixer {
 public:
  LatentMixer(Stage& stage, Attention& attention);

  /// From rows prepared for q_a (or q) and kv_a to rows of the model's width, valid until the next call.
  Rows run(const AttentionSpec& spec, const LatentSpec& latent, const PreparedRows& input);

  std::size_t bytes() const;

 private:
  void project(const LatentSpec& latent, const PreparedRows& input);
  void rotate(const AttentionSpec& spec, std::size_t i, float* part) const;
  void place_heads(const AttentionSpec& spec, const LatentSpec& latent);
  void place_latent(const AttentionSpec& spec, const LatentSpec& latent);
  void store(const AttentionSpec& spec, std::size_t i, std::size_t head, const float* key, const float* value) const;
  Rows expand(const AttentionSpec& spec, const LatentSpec& latent, const Rows& mixed);

  Stage& stage_;
  Attention& attention_;
  PreparedRows low_rows_, latent_rows_, head_rows_, mixed_rows_;
  RowBuffer low_buffer_, full_buffer_, kv_buffer_, latent_buffer_, both_buffer_, heads_buffer_, q_buffer_, key_buffer_,
      mixed_buffer_, values_buffer_, out_buffer_;
  Rows full_, kv_, latent_, both_, q_, key_;
};

}  // namespace hk::models
