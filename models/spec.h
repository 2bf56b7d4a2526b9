// A transformer written down as data: what one forward pass (models/pass.h) needs to know to compute any family.
//
// Layer: models. A family file (models/families) fills a ModelSpec once, at load; everything after that only reads it.
// Goals: a layer is a few independent choices (norm placement, mixer, rotation, feed-forward), so that a new family is
// a new combination and not a new function. Not here: file access, buffers, threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/kernels.h"

namespace hk::models {

/// A weight matrix in the mapped file, bound to the kernel that multiplies it. Empty when `data` is null.
struct Matrix {
  const std::byte* data = nullptr;
  std::size_t row_bytes = 0;
  std::size_t rows = 0;  ///< outputs
  std::size_t cols = 0;  ///< inputs
  kernels::MatmulFn multiply = nullptr;
  kernels::ActivationFormat activation = kernels::ActivationFormat::kNone;
  kernels::StorageType type = kernels::StorageType::kF32;
  float scale = 1.0F;           ///< the product is multiplied by it (NAME.scale, logit scales)
  const float* bias = nullptr;  ///< added after the scale; null: none

  explicit operator bool() const { return data != nullptr; }
  /// The matrix of rows [first, first + count): how fused q|k|v and gate|up matrices are taken apart.
  Matrix slice(std::size_t first, std::size_t count) const {
    Matrix part = *this;
    part.data = data + first * row_bytes;
    part.rows = count;
    part.bias = bias == nullptr ? nullptr : bias + first;
    return part;
  }
};

/// A table whose rows are looked up, not multiplied: token embeddings, learned positions.
struct LookupTable {
  const std::byte* data = nullptr;
  std::size_t row_bytes = 0;
  std::size_t rows = 0;
  std::size_t cols = 0;
  kernels::DecodeFn decode = nullptr;

  explicit operator bool() const { return data != nullptr; }
};

enum class NormKind : std::uint8_t { kNone, kRms, kLayer };

struct NormSpec {
  NormKind kind = NormKind::kNone;
  float epsilon = 0;
  const float* weight = nullptr;  ///< null: ones
  const float* bias = nullptr;    ///< null: zeros; LayerNorm only

  explicit operator bool() const { return kind != NormKind::kNone; }
};

/// What one q or k vector is normalised over.
enum class HeadNormScope : std::uint8_t {
  kSharedWeight,  ///< each head alone, one weight of head size for all heads
  kOwnWeight,     ///< each head alone, a weight [heads, head size]
  kWholeRow,      ///< all heads together
};

enum class RopeStyle : std::uint8_t {
  kAdjacent,  ///< pairs (0,1), (2,3), ...
  kHalves,    ///< pairs (i, i + n_rot / 2)
};

/// Angles of a rotary embedding: pair i turns by position * frequencies[i]. Scaling of every kind is folded in at load.
struct RopeTable {
  std::size_t n_rot = 0;
  std::vector<double> frequencies;  ///< n_rot / 2
  std::vector<double>
      long_frequencies;  ///< the set for sequences opened with more than `original_context`; empty: the same
  std::size_t original_context = 0;
  float magnitude = 1.0F;  ///< factor of cos and sin
};

/// What is kept per position by one layer's attention. Layers may share a slot.
struct KvSlot {
  std::size_t heads = 0;
  std::size_t key_length = 0;
  std::size_t value_length = 0;
  std::size_t window = 0;  ///< 0: all positions are kept
};

struct AttentionSpec {
  std::size_t heads = 0;
  std::size_t kv_heads = 0;
  std::size_t key_length = 0;    ///< of q and k heads
  std::size_t value_length = 0;  ///< of v heads
  Matrix q, k, v, output;
  float clamp = 0;  ///< q, k, v limited to [-clamp, clamp]; 0: not

  HeadNormScope head_norm_scope = HeadNormScope::kSharedWeight;
  NormSpec q_norm, k_norm;
  bool head_norm_after_rope = false;
  NormSpec v_norm;  ///< over each value head

  std::optional<std::size_t> rope;  ///< index into ModelSpec::ropes; none: the layer knows no rotation
  RopeStyle rope_style = RopeStyle::kAdjacent;

  float scale = 0;    ///< of scores
  float softcap = 0;  ///< 0: none
  /// q is multiplied by 1 + temperature_scale * ln(1 + floor((position + temperature_offset) / temperature_length)).
  float temperature_scale = 0;
  float temperature_offset = 0;
  double temperature_length = 1;

  std::size_t window = 0;         ///< keys seen, own position included; 0: all
  std::size_t block = 0;          ///< only keys of the same block of positions are seen; 0: all
  bool strided_heads = false;     ///< query head h reads kv head h % kv_heads instead of h / (heads / kv_heads)
  const float* sinks = nullptr;   ///< a logit per head that joins the softmax without a value
  const float* slopes = nullptr;  ///< ALiBi, a slope per head

  std::size_t kv_slot = 0;  ///< index into ModelSpec::kv_slots
  NormSpec sub_norm;        ///< on the attention result, before `output`
};

enum class Activation : std::uint8_t {
  kSilu,
  kGelu,   ///< tanh form
  kRelu2,  ///< relu(x)^2
  kXielu,  ///< a parabola above zero, an exponential below, by XieluSpec
};

/// x > 0: positive * x^2 + linear * x; else negative * (exp(min(x, limit)) - 1 - x) + linear * x.
struct XieluSpec {
  float positive = 0;
  float negative = 0;
  float linear = 0;
  float limit = 0;
};

/// down(act(gate(x)) * up(x)), or down(act(up(x))) without a gate.
struct FeedForwardSpec {
  Activation activation = Activation::kSilu;
  XieluSpec xielu;
  Matrix gate, up, down;
  NormSpec sub_norm;  ///< on the activated row, before `down`
};

/// What mixes positions in a layer.
enum class MixerKind : std::uint8_t { kNone, kAttention };

enum class FeedForwardKind : std::uint8_t { kNone, kDense };

/// x += post(mixer(pre(x))); x += post(feed_forward(pre(x))). An absent norm passes its input through.
struct LayerSpec {
  MixerKind mixer = MixerKind::kAttention;
  AttentionSpec attention;
  NormSpec mixer_norm, mixer_post_norm;

  FeedForwardKind feed_forward_kind = FeedForwardKind::kDense;
  FeedForwardSpec feed_forward;
  NormSpec feed_forward_norm, feed_forward_post_norm;
  /// Both branches read the layer's input. Without a feed_forward_norm of its own the feed-forward reads mixer_norm's
  /// result.
  bool parallel = false;

  float residual_scale = 1.0F;  ///< of both branches
};

struct ModelSpec {
  std::string architecture;
  std::size_t width = 0;
  std::size_t vocab_size = 0;
  std::size_t context_length = 0;

  LookupTable token_embedding;
  LookupTable position_embedding;  ///< learned absolute positions; rows limit the context
  float embedding_scale = 1.0F;
  NormSpec embedding_norm;

  std::vector<LayerSpec> layers;
  std::vector<RopeTable> ropes;
  std::vector<KvSlot> kv_slots;

  NormSpec output_norm;
  Matrix output;  ///< logit scale in its `scale`
  float logit_softcap = 0;

  std::vector<std::vector<float>> owned;  ///< vectors that are not f32 in the file, or made at load
};

}  // namespace hk::models
