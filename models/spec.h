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

/// The same matrix of every expert of a layer: one tensor [experts, rows, cols], or a tensor for each.
struct MatrixBank {
  Matrix first;                   ///< of expert 0
  std::size_t count = 0;          ///< experts
  std::vector<Matrix> separate;   ///< when each has a tensor of its own
  const float* scales = nullptr;  ///< a factor of the product for each expert; null: ones

  explicit operator bool() const { return count != 0; }
  Matrix operator[](std::size_t expert) const {
    if (!separate.empty()) return separate[expert];
    Matrix one = first;
    one.data = first.data + expert * first.rows * first.row_bytes;
    if (first.bias != nullptr) one.bias = first.bias + expert * first.rows;
    if (scales != nullptr) one.scale *= scales[expert];
    return one;
  }
  /// Rows [from, from + n) of every expert: how fused gate|up tensors are taken apart.
  MatrixBank slice(std::size_t from, std::size_t n) const;
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
  /// Without `k` the layer reads what another one put into its slot; without `v` the values are the projected keys as
  /// they are before norm and rotation.
  Matrix q, k, v, output;
  bool q_holds_gate = false;  ///< q is twice as wide: of each head the query, then its gate
  float clamp = 0;            ///< q, k, v limited to [-clamp, clamp]; 0: not

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
  /// The result is multiplied by the sigmoid of this matrix times the input: a factor for each value, or for each head.
  Matrix gate;

  std::size_t kv_slot = 0;  ///< index into ModelSpec::kv_slots
  NormSpec sub_norm;        ///< on the attention result, before `output`
};

enum class Activation : std::uint8_t {
  kSilu,
  kGelu,  ///< tanh form
  kRelu,
  kRelu2,      ///< relu(x)^2
  kSwigluOai,  ///< x * sigmoid(1.702 x) of the gate cut at 7, times 1 + up limited to [-7, 7]
  kXielu,      ///< a parabola above zero, an exponential below, by XieluSpec
};

/// Multi-head latent attention: keys and values of all heads come from one short latent vector a position. The parts
/// that it shares with plain attention (heads, cached sizes, rotation, scale, output) stand in the layer's
/// AttentionSpec.
struct LatentSpec {
  Matrix q_a;  ///< with it q has two steps
  NormSpec q_a_norm;
  Matrix q;     ///< rows of heads * (nope + n_rot)
  Matrix kv_a;  ///< [rank + n_rot, width]: the latent, then a key part that is rotated and shared by all heads
  NormSpec kv_a_norm;
  std::size_t rank = 0;
  std::size_t nope = 0;  ///< dimensions of a head that are not rotated
  std::size_t n_rot = 0;
  std::size_t value_length = 0;  ///< of what a head gives to `output`
  /// Stored apart, [heads, rank, nope] and [heads, value_length, rank]: the latent is cached and plays the key and the
  /// value of a single kv head; k_b moves queries into its space and v_b results out of it.
  MatrixBank k_b, v_b;
  /// Stored together, rows of heads * (nope + value_length): keys and values of every head are made and cached.
  Matrix kv_b;
};

/// x > 0: positive * x^2 + linear * x; else negative * (exp(min(x, limit)) - 1 - x) + linear * x.
struct XieluSpec {
  float positive = 0;
  float negative = 0;
  float linear = 0;
  float limit = 0;
};

/// A short causal convolution along the sequence, each channel alone.
struct ConvolutionSpec {
  std::size_t kernel = 0;
  std::size_t channels = 0;
  const float* weights = nullptr;  ///< [kernel][channels], the present input last
  const float* bias = nullptr;     ///< null: none
  std::size_t state = 0;           ///< offset into the sequence's state: its last kernel - 1 inputs

  std::size_t state_floats() const { return (kernel - 1) * channels; }
};

/// out(c * convolution(b * x)), with b, c and x from one matrix.
struct ShortConvolutionSpec {
  Matrix in, out;
  ConvolutionSpec convolution;
};

/// up(f(down(x))) + base, through few dimensions.
struct LowRankSpec {
  Matrix down, up;
  const float* base = nullptr;
};

/// The gated delta rule: per value head a matrix [key_length, value_length] that forgets, and learns the difference
/// between what it says for a key and what it should.
struct DeltaSpec {
  Matrix qkv;                 ///< q and k of all key heads, v of all value heads
  Matrix q, k, v;             ///< or each alone
  Matrix gate;                ///< of the result, as wide as v
  LowRankSpec low_gate;       ///< or through few dimensions
  bool sigmoid_gate = false;  ///< the gate's sigmoid counts, else its SiLU
  Matrix beta_alpha;   ///< either both in one, of each key head first the betas of its value heads, then the alphas,
  Matrix beta, alpha;  ///< or each alone
  /// Or, of each channel of the keys an alpha of its own: what a head keeps differs from channel to channel. The base
  /// is their dt_bias.
  LowRankSpec channel_alpha;
  ConvolutionSpec convolution;     ///< over q, k and v
  const float* dt_bias = nullptr;  ///< of each value head
  const float* decay = nullptr;    ///< of each value head, below zero
  NormSpec norm;                   ///< over each value head
  Matrix out;
  std::size_t key_heads = 0, value_heads = 0;
  std::size_t key_length = 0, value_length = 0;
  bool grouped = false;  ///< value head h reads key head h / (value_heads / key_heads), else h % key_heads
  float epsilon = 0;     ///< smallest length of q and k
  std::size_t state = 0;

  std::size_t state_floats() const { return value_heads * key_length * value_length; }
};

/// Selective scans. Mamba-2: per head a matrix [state_length, head length] with one decay, B and C shared by groups.
/// Mamba-1 (`x` is set): per channel a vector with a decay for each entry, dt, B and C from a second projection.
struct ScanSpec {
  Matrix in;  ///< Mamba-2: z, then x, B and C of all groups, then dt; Mamba-1: x, then z
  ConvolutionSpec convolution;
  Matrix x;                          ///< Mamba-1: to dt (rank), B and C
  NormSpec dt_norm, b_norm, c_norm;  ///< Mamba-1
  Matrix dt;                         ///< Mamba-1: from rank to channels
  const float* dt_bias = nullptr;    ///< of each head or channel
  const float* decay = nullptr;      ///< below zero: of each head; Mamba-1: [channels][state_length]
  const float* skip = nullptr;       ///< of each head or channel: how much of x joins the result
  NormSpec norm;                     ///< over each group of the gated result, a weight for each channel
  Matrix out;
  std::size_t heads = 0, groups = 1;
  std::size_t inner = 0;  ///< channels
  std::size_t state_length = 0;
  std::size_t dt_rank = 0;
  std::size_t state = 0;

  std::size_t state_floats() const { return inner * state_length; }
};

/// The time mixing of RWKV 6 and 7: per head a matrix that forgets by channel and learns keys and values; 7 also takes
/// away what it knew about a key. Every projection reads its own mixture of a row and the one before.
struct TimeMixSpec {
  enum Input : std::uint8_t { kReceptance, kDecay, kKey, kValue, kRate, kGate, kInputs };

  bool removes = false;  ///< RWKV 7
  bool first = false;    ///< of the layers: its values mix into those of the others
  std::size_t heads = 0, head_size = 0;
  const float* lerp[kInputs] = {};  ///< how much of the row before each input takes; null: there is no such input
  const float* lerp_all = nullptr;  ///< RWKV 6: of what decides how much more
  Matrix lerp_down;                 ///< to a part for each input
  MatrixBank lerp_up;               ///< decay, key, value, receptance, gate
  Matrix receptance, key, value, gate, output;
  LowRankSpec decay, rate, value_mix, low_gate;
  const float* bonus = nullptr;       ///< of each channel: what the present row counts more
  const float* key_scale = nullptr;   ///< RWKV 7: of keys to take away
  const float* rate_scale = nullptr;  ///< RWKV 7: how much the rate weakens keys
  NormSpec norm;                      ///< over each head, a weight for each channel
  std::size_t shift = 0, memory = 0;  ///< offsets into the state: the last row, and the matrices
};

/// RWKV's feed-forward: value(relu(key(x))^2), times the sigmoid of receptance(x) when there is one.
struct ChannelMixSpec {
  const float* lerp_key = nullptr;
  const float* lerp_receptance = nullptr;
  Matrix key, value, receptance;
  std::size_t shift = 0;
};

struct ActivationSpec {
  Activation kind = Activation::kSilu;
  float limit = 0;     ///< of act(gate) from above, and of up on both sides; 0: none
  float sparsity = 0;  ///< only what of a gate lies so many deviations above its row's mean counts; 0: all of it
  XieluSpec xielu;
};

/// down(act(gate(x)) * up(x)), or down(act(up(x))) without a gate.
struct FeedForwardSpec {
  ActivationSpec activation;
  Matrix gate, up, down;
  NormSpec sub_norm;  ///< on the activated row, before `down`
};

/// How router logits become scores.
enum class Gating : std::uint8_t {
  kSoftmax,            ///< over all experts
  kSigmoid,            ///< each expert alone
  kSoftmaxOverChosen,  ///< the largest logits are chosen first
};

/// What a part of a layer reads.
enum class LayerInput : std::uint8_t {
  kNormed,  ///< what the feed-forward's norm made
  kStream,  ///< the residual stream before that norm
  kLayer,   ///< the residual stream as it came into the layer
};

struct RouterSpec {
  Matrix logits;  ///< [experts, width]
  LayerInput input = LayerInput::kNormed;
  NormSpec norm;  ///< of an input other than kNormed
  Gating gating = Gating::kSoftmax;
  const float* selection_bias = nullptr;  ///< added to scores for the choice alone
  /// Experts lie in so many groups, of which the best are looked at; a group counts as its two best experts together.
  std::size_t groups = 1;
  std::size_t groups_used = 1;
  std::size_t used = 0;        ///< experts a token
  bool renormalise = false;    ///< weights are divided by their sum
  float weights_scale = 1.0F;  ///< and multiplied by this
};

/// A mixture: a few experts chosen for each token, and a shared one for all.
struct ExpertsSpec {
  RouterSpec router;
  ActivationSpec activation;
  MatrixBank gate, up, down;
  bool weigh_input = false;  ///< weights multiply what the expert reads instead of what it gives
  FeedForwardSpec shared;    ///< without `up`: none
  Matrix shared_gate;        ///< [1, width]: the shared result is multiplied by its sigmoid

  /// For mixtures that stand beside a dense feed-forward (FeedForwardKind::kDenseAndExperts).
  LayerInput input = LayerInput::kStream;
  NormSpec norm, post_norm, dense_post_norm;
};

/// What mixes positions in a layer.
enum class MixerKind : std::uint8_t {
  kNone,
  kAttention,
  kLatentAttention,
  kShortConvolution,
  kDelta,
  kScan,
  kAttentionAndScan,  ///< side by side, added up
  kTimeMix,
  kLinear,  ///< AttentionSpec::output alone: positions are not mixed at all
};

enum class FeedForwardKind : std::uint8_t {
  kNone,
  kDense,
  kExperts,
  kDenseAndExperts,  ///< both, each with norms of its own, added up
  kChannelMix,
};

/// A second input of every layer, made once for each token: a looked-up row and a projection of the embedding, joined
/// after a norm of the latter. The rows of all layers lie side by side.
struct PerLayerInputSpec {
  std::size_t width = 0;  ///< of one layer's part; 0: the model has none
  LookupTable table;      ///< rows of layers * width
  float table_scale = 1.0F;
  Matrix projection;
  NormSpec projection_norm;  ///< over each layer's part
};

/// How a layer takes its part in: x += norm(out(gelu(gate(x)) * part)).
struct PerLayerUseSpec {
  Matrix gate, out;
  NormSpec norm;
};

/// A branch beside attention through few dimensions: x = (x + input + norm(up(down(input)))) / sqrt(2), after attention
/// has joined x.
struct LowBranchSpec {
  Matrix down, up;
  NormSpec norm;
};

/// Copies of the residual stream, of which layers compute the first (models/streams.h).
struct StreamsSpec {
  std::size_t count = 0;  ///< 0: there is but one
  MatrixBank up;          ///< to each other stream from the embedding
  MatrixBank down;        ///< and back
};

struct StreamsUseSpec {
  NormSpec router_norm;
  Matrix router;                   ///< [streams, width]: weights of the streams, by their tanh
  const float* predict = nullptr;  ///< [to][from][weight]: shares of streams in predictions
  const float* correct = nullptr;  ///< [to][weight]: shares of what the layer found
  const float* scale = nullptr;    ///< of the first stream where the layer's own input is taken in
};

/// x += post(mixer(pre(x))); x += post(feed_forward(pre(x))). An absent norm passes its input through.
struct LayerSpec {
  MixerKind mixer = MixerKind::kAttention;
  AttentionSpec attention;
  LatentSpec latent;
  ShortConvolutionSpec short_convolution;
  DeltaSpec delta;
  ScanSpec scan;
  TimeMixSpec time_mix;
  NormSpec mixer_norm, mixer_post_norm;

  FeedForwardKind feed_forward_kind = FeedForwardKind::kDense;
  FeedForwardSpec feed_forward;
  ExpertsSpec experts;
  ChannelMixSpec channel_mix;
  NormSpec feed_forward_norm, feed_forward_post_norm;
  /// Both branches read the layer's input. Without a feed_forward_norm of its own the feed-forward reads mixer_norm's
  /// result.
  bool parallel = false;

  float residual_scale = 1.0F;  ///< of both branches
  LowBranchSpec low_branch;
  StreamsUseSpec streams;
  PerLayerUseSpec per_layer;
  float output_scale = 1.0F;  ///< of the stream at the layer's end
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
  PerLayerInputSpec per_layer_input;
  StreamsSpec streams;

  std::vector<LayerSpec> layers;
  std::vector<RopeTable> ropes;
  std::vector<KvSlot> kv_slots;
  std::size_t state_floats = 0;  ///< of all recurrent layers together; each has an offset into them

  NormSpec output_norm;
  Matrix output;  ///< logit scale in its `scale`
  float logit_softcap = 0;

  std::vector<std::vector<float>> owned;  ///< vectors that are not f32 in the file, or made at load
};

}  // namespace hk::models
