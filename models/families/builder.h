// The building blocks that family files put together: sizes, norms, attention, feed-forward, embeddings, output.
//
// Layer: models. Each block reads the keys and binds the tensors that most families share, by GGUF's names, and leaves
// the rest to the family: what it returns is plain data to be changed before it goes into the spec.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "models/keys.h"
#include "models/rope.h"
#include "models/spec.h"
#include "models/weights.h"

namespace hk::models {

/// Hyper-parameters that nearly every family has under the same keys.
struct Sizes {
  std::size_t layers = 0;
  std::size_t width = 0;
  std::size_t context = 0;
  PerLayer heads, kv_heads, feed_forward;
  std::size_t key_length = 0;
  std::size_t value_length = 0;
  std::size_t n_rot = 0;
};

class Builder {
 public:
  Builder(const engine::ModelReader& reader, const kernels::KernelTable& kernels, const std::string& architecture);

  Keys keys;
  ModelSpec spec;
  Weights weights;
  Sizes sizes;

  /// Reads Sizes and remembers which norm the family uses, with its epsilon. Call first.
  void read_sizes(NormKind norm_kind);
  /// "blk.<layer>.<part>"
  static std::string name(std::size_t layer, std::string_view part);

  /// NAME.weight [n], and for LayerNorm NAME.bias [n] when present.
  NormSpec norm(const std::string& name, std::size_t n);
  /// No norm when the file has no such tensor.
  NormSpec optional_norm(const std::string& name, std::size_t n);
  /// The family's norm without weights.
  NormSpec bare_norm() const;

  /// The family's norm under a name without ".weight"; with it when the file says so.
  NormSpec bare_named_norm(const std::string& name, std::size_t n);

  void embedding();
  /// Learned absolute positions, one row each.
  void positions();
  /// output_norm, then `output` or, without one, the embedding matrix. Logits are multiplied by `scale`.
  void output(double scale = 1);
  void output(const NormSpec& output_norm, double scale);
  /// Adds the table of the usual keys and factor tensors; returns its index.
  std::size_t rope();
  std::size_t rope(const RopeSettings& settings);
  RopeSettings rope_settings();

  /// q, k, v and output, split or fused as attn_qkv; scale 1/sqrt(key_length) unless attention.scale; a cache slot of
  /// its own. No rotation: the family sets `rope` and `rope_style`.
  AttentionSpec attention(std::size_t layer, Bias qkv_bias = Bias::kOptional);
  /// A layer with norms before attention (attn_norm) and feed-forward (ffn_norm).
  LayerSpec pre_norm_layer(std::size_t layer, const AttentionSpec& attention, const FeedForwardSpec& feed_forward);
  /// A layer whose feed-forward stands beside attention; both read attn_norm's result.
  LayerSpec parallel_layer(std::size_t layer, const AttentionSpec& attention, const FeedForwardSpec& feed_forward);

  /// Which layers see a window only: `attention.sliding_window_pattern` as a period n (every n-th layer is full,
  /// counting from one) or a flag for each layer, else the family's period.
  std::vector<bool> window_layers(std::size_t usual_period) const;
  /// Position biases of ALiBi with the usual slopes for `max_bias`.
  void alibi(AttentionSpec& attention, double max_bias);
  /// Makes the layer see only `window` positions (0: all), in attention and cache.
  void set_window(AttentionSpec& attention, std::size_t window);
  /// Norms of q and k heads with a shared weight of head size.
  void head_norms(AttentionSpec& attention, std::size_t layer);
  /// The same with one weight over all heads of the row.
  void whole_row_norms(AttentionSpec& attention, std::size_t layer);
  /// The same with a weight for each head.
  void own_head_norms(AttentionSpec& attention, std::size_t layer);
  /// gate, up, down; or ffn_up of twice the width that holds gate and up when the file has no ffn_gate.
  FeedForwardSpec gated_feed_forward(std::size_t layer, Activation activation);
  /// up, down.
  FeedForwardSpec plain_feed_forward(std::size_t layer, Activation activation);

  /// The same with another inner width than feed_forward_length.
  FeedForwardSpec gated_feed_forward(std::size_t layer, Activation activation, std::size_t inner);

  /// Throws when the file asks for a mixture of experts, for families that are run without.
  void refuse_experts() const;

 private:
  std::size_t head_size(std::string_view key) const;

  NormKind norm_kind_ = NormKind::kRms;
  float epsilon_ = 0;
  std::size_t all_layers_ = 0;  // with those that are skipped: lists in the metadata count them
};

}  // namespace hk::models
