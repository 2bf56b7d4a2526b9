// One forward pass over a chunk of rows: interprets a ModelSpec layer by layer.
//
// Layer: models. Owns all buffers; they grow to the largest chunk seen and are then reused, so that a pass allocates
// nothing. Rows are independent except in attention; each stage shares them, or the weight rows, out among the workers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/generate/model.h"
#include "models/attend.h"
#include "models/product.h"
#include "models/rows.h"
#include "models/spec.h"

namespace hk::models {

class Pass {
 public:
  Pass(const ModelSpec& spec, const kernels::KernelTable& kernels, engine::ThreadPool& pool);

  /// Computes the rows of `segments` (row i holds tokens[i]; the sequences are prepared for them), writes keys and
  /// values, and for each row in `wanted` a row of vocab_size logits to `logits`. False when `cancelled` said so; then
  /// nothing is promised about positions from the segments' on.
  bool run(std::span<const Segment> segments, std::span<const engine::TokenId> tokens,
           std::span<const std::uint32_t> wanted, float* logits, const std::function<bool()>& cancelled);

  std::size_t bytes() const;

 private:
  struct RowPlace {
    KvSequence* sequence;
    std::size_t position;
  };
  struct Angles {
    RowBuffer cos_buffer, sin_buffer;
    Rows cos, sin;
  };

  void place_rows(std::span<const Segment> segments, std::size_t n);
  void fill_angles(std::size_t n);
  void embed(std::span<const engine::TokenId> tokens);
  bool run_layer(const LayerSpec& layer, std::span<const Segment> segments, const std::function<bool()>& cancelled);
  /// x normalised, or x itself without a norm; also prepared for the matrices.
  Rows normalise(const NormSpec& norm, const Rows& x, RowBuffer& into, std::initializer_list<const Matrix*> matrices);
  Rows attention(const AttentionSpec& spec, const Rows& input, std::span<const Segment> segments);
  void place_heads(const AttentionSpec& spec, std::size_t i);
  void norm_heads(const AttentionSpec& spec, const NormSpec& norm, float* row, std::size_t heads,
                  std::size_t size) const;
  void rotate(const AttentionSpec& spec, std::size_t i, float* row, std::size_t heads) const;
  Rows feed_forward(const FeedForwardSpec& spec, const Rows& input);
  void activate(const FeedForwardSpec& spec, float* gate, const float* up, std::size_t n) const;
  void add_branch(const NormSpec& post_norm, float scale, const Rows& branch);
  void norm(const NormSpec& norm, const float* x, std::size_t n, float* out) const;
  void output(std::span<const std::uint32_t> wanted, float* logits);

  const ModelSpec& spec_;
  const kernels::KernelTable& kernels_;
  engine::ThreadPool& pool_;
  Products products_;
  Attention attention_;

  std::vector<RowPlace> places_;
  std::vector<Angles> angles_;  // one for each of ModelSpec::ropes
  RowBuffer x_buffer_, normed_buffer_, normed2_buffer_, q_buffer_, k_buffer_, v_buffer_, mixed_buffer_, branch_buffer_,
      branch2_buffer_, gate_buffer_, up_buffer_;
  Rows x_, q_, k_, v_;
};

}  // namespace hk::models
