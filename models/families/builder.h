// The building blocks that family files put together: sizes, norms, attention, feed-forward, embeddings, output.
//
// Layer: models. Each block reads the keys and binds the tensors that most families share, by GGUF's names, and leaves
// the rest to the family: what it returns is plain data to be changed before it goes into the spec.
#pragma once

#include <cstddef>
#include <optional>
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

/// How a family's mixtures of experts work where the metadata leaves it open.
struct ExpertDefaults {
  Gating gating = Gating::kSoftmax;
  bool renormalise = false;
  Activation activation = Activation::kSilu;
  bool gated = true;
  /// ffn_gate_inp.scale holds factors of what the router reads: the stream, normalised without other weights.
  bool router_norm = false;
};

/// Where attention departs from a matrix each for q, k and v and a slot of its own.
struct AttentionOptions {
  Bias qkv_bias = Bias::kOptional;
  bool q_holds_gate = false;                ///< attn_q holds of each head the query, then a gate of the result
  bool values_from_keys = false;            ///< without attn_v the values are the projected keys
  std::optional<std::size_t> kv_slot = {};  ///< reads what another layer put there
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
  AttentionSpec attention(std::size_t layer, const AttentionOptions& options);
  /// A layer with norms before attention (attn_norm) and feed-forward (ffn_norm).
  LayerSpec pre_norm_layer(std::size_t layer, const AttentionSpec& attention, const FeedForwardSpec& feed_forward);
  /// The same with its feed-forward left to the caller.
  LayerSpec pre_norm_layer(std::size_t layer, const AttentionSpec& attention);
  /// A layer whose feed-forward stands beside attention; both read attn_norm's result.
  LayerSpec parallel_layer(std::size_t layer, const AttentionSpec& attention, const FeedForwardSpec& feed_forward);

  /// Which layers see a window only: `attention.sliding_window_pattern` as a period n (every n-th layer is full,
  /// counting from one) or a flag for each layer, else the family's period.
  std::vector<bool> window_layers(std::size_t usual_period) const;
  /// A limit (0: none) for each layer that is run, from one for all or a list.
  std::vector<float> per_layer_limits(std::string_view key, double usual) const;
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

  /// The routed experts of a layer, ffn_gate_inp and ffn_*_exps (fused, or a tensor for each expert, too), without a
  /// shared one. Reads the keys expert_*; `expert_gating_func` and `expert_weights_norm` overrule the defaults.
  ExpertsSpec experts(std::size_t layer, const ExpertDefaults& defaults);
  /// Adds the shared expert ffn_*_shexp of the given inner width, behind ffn_gate_inp_shexp when the file has it.
  void shared_expert(ExpertsSpec& experts, std::size_t layer, std::size_t inner);
  /// expert_feed_forward_length, or else feed_forward_length.
  std::size_t expert_width(std::size_t layer) const;
  /// The inner width of the shared expert: its own key, or expert_shared_count times expert_width; 0: there is none.
  std::size_t shared_width(std::size_t layer, std::size_t usual_count) const;
  /// Turns a layer's feed-forward into a mixture.
  static void set_experts(LayerSpec& layer, ExpertsSpec experts);
  /// Routed experts beside shared ones (`usual_shared` where no key says how many), or a gated SiLU feed-forward.
  void experts_or_dense(LayerSpec& layer, std::size_t index, bool mixes, const ExpertDefaults& defaults,
                        std::size_t usual_shared);
  /// The second input of every layer, when embedding_length_per_layer_input says there is one; call after `embedding`.
  void per_layer_input();
  void per_layer_use(LayerSpec& layer, std::size_t index);
  /// Rotations of Gemma 3: scaling stretches the full layers only, window layers keep their own base.
  std::pair<std::size_t, std::size_t> full_and_local_ropes();
  /// For each of the last `attention.shared_kv_layers` layers (or of so many as usual) the earlier one of its kind
  /// whose cache it reads.
  std::vector<std::optional<std::size_t>> shared_kv_layers(const std::vector<bool>& windowed, std::size_t usual) const;
  /// A layer with latent attention (attn_kv_a_mqa and its kin) and norms before both branches, its feed-forward left to
  /// the caller.
  LayerSpec latent_layer(std::size_t layer, std::optional<std::size_t> rope, RopeStyle style);
  /// Room in the sequences' recurrent state: its offset.
  std::size_t take_state(std::size_t floats);
  /// NAME.weight [channels, kernel], and NAME.bias [channels] when present.
  ConvolutionSpec convolution(const std::string& name, std::size_t kernel, std::size_t channels);
  /// The scan of Mamba-1 or Mamba-2 from ssm_* tensors and keys ssm.*.
  ScanSpec scan(std::size_t layer);
  ScanSpec channel_scan(std::size_t layer);

  /// Whether the layer comes after leading_dense_block_count dense ones.
  bool has_experts(std::size_t layer) const { return layer >= keys.count_or("leading_dense_block_count", 0); }

  /// Throws when the file asks for a mixture of experts, for families that are run without.
  void refuse_experts() const;

 private:
  void bind_qkv(AttentionSpec& attention, std::size_t layer, const AttentionOptions& options);
  std::size_t head_size(std::string_view key) const;
  RouterSpec router(std::size_t layer, std::size_t experts, const ExpertDefaults& defaults);
  MatrixBank expert_bank(std::size_t layer, std::string_view part, std::size_t experts, std::size_t rows,
                         std::size_t cols);

  NormKind norm_kind_ = NormKind::kRms;
  float epsilon_ = 0;
  std::size_t all_layers_ = 0;  // with those that are skipped: lists in the metadata count them
};

}  // namespace hk::models
