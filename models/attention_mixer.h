// Attention as a part of a layer: projections, what happens to heads on the way to the cache, attention itself, output.
//
// Layer: models. The sums over cached positions are Attention (models/attend.h).
#pragma once

#include "models/attend.h"
#include "models/stage.h"

namespace hk::models {

class AttentionMixer {
 public:
  AttentionMixer(Stage& stage, Attention& attention);

  /// From rows prepared for q, k, v and gate to rows of the model's width, valid until the next call.
  Rows run(const AttentionSpec& spec, const PreparedRows& input);

  std::size_t bytes() const;

 private:
  void project(const AttentionSpec& spec, const PreparedRows& input);
  void place_heads(const AttentionSpec& spec, std::size_t i);
  void norm_heads(const AttentionSpec& spec, const NormSpec& norm, float* row, std::size_t heads,
                  std::size_t size) const;
  void rotate(const AttentionSpec& spec, std::size_t i, float* row, std::size_t heads) const;
  void store(const AttentionSpec& spec, std::size_t first, std::size_t count);
  void apply_gate(const AttentionSpec& spec, const float* gate, float* row) const;

  Stage& stage_;
  Attention& attention_;
  PreparedRows mixed_rows_;
  RowBuffer q_buffer_, k_buffer_, v_buffer_, gate_buffer_, both_buffer_, mixed_buffer_, out_buffer_;
  Rows q_, k_, v_, gate_, both_;
};

}  // namespace hk::models
