// The building blocks that family files put together (see builder.h).
#include "models/families/builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace hk::models {

Builder::Builder(const engine::ModelReader& reader, const kernels::KernelTable& kernels,
                 const std::string& architecture)
    : keys(reader, architecture), weights(reader, kernels, architecture, spec.owned) {
  spec.architecture = architecture;
}

std::string Builder::name(std::size_t layer, std::string_view part) { return fmt::format("blk.{}.{}", layer, part); }

void Builder::read_sizes(NormKind norm_kind) {
  sizes.layers = keys.count("block_count");
  // Lists of layers are made before their tensors are looked for; a layer that consists of nothing is none.
  if (sizes.layers > weights.tensors_in_file())
    keys.refuse(keys.full("block_count"), fmt::format("{}", sizes.layers),
                fmt::format("no more layers than the {} tensors of the file", weights.tensors_in_file()));
  const std::size_t trailing = keys.count_or("nextn_predict_layers", 0);  // they take no part in ordinary decoding
  if (trailing >= sizes.layers)
    keys.refuse(keys.full("nextn_predict_layers"), fmt::format("{}", trailing),
                fmt::format("fewer than the {} layers", sizes.layers));
  all_layers_ = sizes.layers;
  sizes.layers -= trailing;
  sizes.width = keys.count("embedding_length");
  sizes.context = keys.count("context_length");
  sizes.heads = keys.per_layer("attention.head_count", all_layers_);
  sizes.kv_heads = keys.per_layer_or("attention.head_count_kv", all_layers_, sizes.heads);
  sizes.feed_forward = keys.contains("expert_feed_forward_length")
                           ? keys.per_layer_or("feed_forward_length", all_layers_, PerLayer(0))
                           : keys.per_layer("feed_forward_length", all_layers_);
  sizes.key_length = head_size("attention.key_length");
  sizes.value_length = head_size("attention.value_length");
  sizes.n_rot = keys.count_or("rope.dimension_count", sizes.key_length);
  norm_kind_ = norm_kind;
  epsilon_ = static_cast<float>(keys.positive(norm_kind == NormKind::kLayer ? "attention.layer_norm_epsilon"
                                                                            : "attention.layer_norm_rms_epsilon"));
  spec.width = sizes.width;
  spec.context_length = sizes.context;
}

/// Head sizes may be given; else they are width / heads, which must then be whole.
std::size_t Builder::head_size(std::string_view key) const {
  if (keys.contains(key)) return keys.count(key);
  const std::size_t heads = sizes.heads[0];
  if (heads == 0) return 0;  // no attention
  if (!sizes.heads.uniform() || sizes.width % heads != 0)
    keys.refuse(keys.full(key), "missing",
                fmt::format("it, since width {} over {} heads gives no head size", sizes.width, heads));
  return sizes.width / heads;
}

NormSpec Builder::norm(const std::string& name, std::size_t n) {
  NormSpec norm = bare_norm();
  norm.weight = weights.vector(name + ".weight", n);
  if (norm.kind == NormKind::kLayer) norm.bias = weights.optional_vector(name + ".bias", n);
  return norm;
}

NormSpec Builder::bare_named_norm(const std::string& name, std::size_t n) {
  if (weights.contains(name + ".weight")) return norm(name, n);
  NormSpec norm = bare_norm();
  norm.weight = weights.vector(name, n);
  return norm;
}

NormSpec Builder::optional_norm(const std::string& name, std::size_t n) {
  return weights.contains(name + ".weight") ? norm(name, n) : NormSpec{};
}

NormSpec Builder::bare_norm() const { return {norm_kind_, epsilon_, nullptr, nullptr}; }

void Builder::embedding() {
  spec.token_embedding = weights.table("token_embd", sizes.width);
  spec.vocab_size = spec.token_embedding.rows;
}

void Builder::positions() { spec.position_embedding = weights.table("position_embd", sizes.width); }

void Builder::output(double scale) { output(norm("output_norm", sizes.width), scale); }

void Builder::output(const NormSpec& output_norm, double scale) {
  spec.output_norm = output_norm;
  const bool own = weights.contains("output.weight");
  spec.output = weights.matrix(own ? "output" : "token_embd", spec.vocab_size, sizes.width);
  if (!own) spec.output.bias = weights.optional_vector("output.bias", spec.vocab_size);
  spec.output.scale *= static_cast<float>(scale);
}

RopeSettings Builder::rope_settings() {
  if (sizes.n_rot == 0 || sizes.n_rot % 2 != 0 || sizes.n_rot > sizes.key_length)
    keys.refuse(keys.full("rope.dimension_count"), fmt::format("{}", sizes.n_rot),
                fmt::format("an even number of dimensions up to the head size {}", sizes.key_length));
  RopeSettings settings = read_rope(keys, sizes.n_rot, sizes.context);
  read_rope_factors(keys, weights, settings);
  return settings;
}

std::size_t Builder::rope() { return rope(rope_settings()); }

std::size_t Builder::rope(const RopeSettings& settings) {
  // Tables are made before the matrices they turn are looked for.
  constexpr std::size_t kMost = std::size_t{1} << 16;  // a hundred times what models have
  if (settings.n_rot > kMost)
    keys.refuse(keys.full("rope.dimension_count"), fmt::format("{}", settings.n_rot),
                fmt::format("at most {} dimensions", kMost));
  spec.ropes.push_back(make_rope_table(settings));
  return spec.ropes.size() - 1;
}

AttentionSpec Builder::attention(std::size_t layer, Bias qkv_bias) {
  return attention(layer, AttentionOptions{.qkv_bias = qkv_bias});
}

AttentionSpec Builder::attention(std::size_t layer, const AttentionOptions& options) {
  AttentionSpec a;
  a.heads = sizes.heads[layer];
  a.kv_heads = sizes.kv_heads[layer];
  a.key_length = sizes.key_length;
  a.value_length = sizes.value_length;
  if (a.heads == 0 || a.kv_heads == 0 || a.heads % a.kv_heads != 0)
    keys.refuse(keys.full("attention.head_count_kv"), fmt::format("{} in layer {}", a.kv_heads, layer),
                fmt::format("a divisor of the {} heads", a.heads));
  if (options.q_holds_gate && a.key_length != a.value_length)
    keys.refuse(keys.full("attention.value_length"), fmt::format("{}", a.value_length),
                fmt::format("the key length {}, since a gate is as wide as a query", a.key_length));
  bind_qkv(a, layer, options);
  a.output = weights.matrix(name(layer, "attn_output"), sizes.width, a.heads * a.value_length);
  const double scale = keys.number_or("attention.scale", 0);  // 0 stands for the usual one
  a.scale = static_cast<float>(scale == 0 ? 1 / std::sqrt(static_cast<double>(a.key_length)) : scale);
  a.kv_slot = options.kv_slot.value_or(spec.kv_slots.size());
  if (!options.kv_slot) spec.kv_slots.push_back({a.kv_heads, a.key_length, a.value_length, 0});
  return a;
}

void Builder::bind_qkv(AttentionSpec& a, std::size_t layer, const AttentionOptions& options) {
  const std::size_t q_rows = a.heads * a.key_length;
  const std::size_t k_rows = a.kv_heads * a.key_length;
  const std::size_t v_rows = a.kv_heads * a.value_length;
  if (!options.q_holds_gate && !options.kv_slot && weights.contains(name(layer, "attn_qkv.weight"))) {
    const Matrix fused =
        weights.matrix(name(layer, "attn_qkv"), q_rows + k_rows + v_rows, sizes.width, options.qkv_bias);
    a.q = fused.slice(0, q_rows);
    a.k = fused.slice(q_rows, k_rows);
    a.v = fused.slice(q_rows + k_rows, v_rows);
    return;
  }
  a.q_holds_gate = options.q_holds_gate;
  a.q = weights.matrix(name(layer, "attn_q"), a.q_holds_gate ? 2 * q_rows : q_rows, sizes.width, options.qkv_bias);
  if (options.kv_slot) return;
  a.k = weights.matrix(name(layer, "attn_k"), k_rows, sizes.width, options.qkv_bias);
  const bool from_keys =
      options.values_from_keys && v_rows == k_rows && !weights.contains(name(layer, "attn_v.weight"));
  if (!from_keys) a.v = weights.matrix(name(layer, "attn_v"), v_rows, sizes.width, options.qkv_bias);
}

void Builder::set_window(AttentionSpec& attention, std::size_t window) {
  attention.window = window;
  spec.kv_slots[attention.kv_slot].window = window;
}

void Builder::head_norms(AttentionSpec& attention, std::size_t layer) {
  attention.q_norm = norm(name(layer, "attn_q_norm"), attention.key_length);
  attention.k_norm = norm(name(layer, "attn_k_norm"), attention.key_length);
}

void Builder::whole_row_norms(AttentionSpec& attention, std::size_t layer) {
  attention.head_norm_scope = HeadNormScope::kWholeRow;
  attention.q_norm = norm(name(layer, "attn_q_norm"), attention.heads * attention.key_length);
  attention.k_norm = norm(name(layer, "attn_k_norm"), attention.kv_heads * attention.key_length);
}

void Builder::own_head_norms(AttentionSpec& attention, std::size_t layer) {
  attention.head_norm_scope = HeadNormScope::kOwnWeight;
  attention.q_norm = attention.k_norm = bare_norm();
  attention.q_norm.weight = weights.vectors(name(layer, "attn_q_norm.weight"), attention.heads, attention.key_length);
  attention.k_norm.weight =
      weights.vectors(name(layer, "attn_k_norm.weight"), attention.kv_heads, attention.key_length);
}

LayerSpec Builder::pre_norm_layer(std::size_t layer, const AttentionSpec& attention,
                                  const FeedForwardSpec& feed_forward) {
  LayerSpec made = pre_norm_layer(layer, attention);
  made.feed_forward = feed_forward;
  return made;
}

LayerSpec Builder::pre_norm_layer(std::size_t layer, const AttentionSpec& attention) {
  LayerSpec made;
  made.mixer_norm = norm(name(layer, "attn_norm"), sizes.width);
  made.attention = attention;
  made.feed_forward_norm = norm(name(layer, "ffn_norm"), sizes.width);
  return made;
}

LayerSpec Builder::parallel_layer(std::size_t layer, const AttentionSpec& attention,
                                  const FeedForwardSpec& feed_forward) {
  LayerSpec made;
  made.parallel = true;
  made.mixer_norm = norm(name(layer, "attn_norm"), sizes.width);
  made.attention = attention;
  made.feed_forward = feed_forward;
  return made;
}

std::vector<bool> Builder::window_layers(std::size_t usual_period) const {
  const std::string_view key = "attention.sliding_window_pattern";
  std::vector<bool> windowed(sizes.layers);
  const PerLayer given = keys.per_layer_or(key, all_layers_, PerLayer(usual_period));
  for (std::size_t i = 0; i < sizes.layers; ++i)
    windowed[i] = given.uniform() ? given[i] != 0 && (i + 1) % given[i] != 0 : given[i] != 0;
  return windowed;
}

std::vector<float> Builder::per_layer_limits(std::string_view key, double usual) const {
  if (!keys.contains(key)) return std::vector<float>(sizes.layers, static_cast<float>(usual));
  std::vector<float> numbers = keys.plain_numbers(keys.full(key), all_layers_);
  if (std::ranges::any_of(numbers, [](float number) { return number < 0; }))
    keys.refuse(keys.full(key), "a list with a number below 0", "limits above 0, or 0 for none");
  numbers.resize(sizes.layers);
  return numbers;
}

void Builder::alibi(AttentionSpec& attention, double max_bias) {
  // Heads up to a power of two get 2^(-max_bias k / n) for k = 1..n; those beyond it the odd steps of the next power.
  const auto n = static_cast<double>(std::bit_floor(attention.heads));
  std::vector<float> slopes(attention.heads);
  for (std::size_t head = 0; head < slopes.size(); ++head) {
    const auto h = static_cast<double>(head);
    slopes[head] = static_cast<float>(h < n ? std::exp2(-max_bias * (h + 1) / n)
                                            : std::exp2(-max_bias / 2 * (2 * (h - n) + 1) / n));
  }
  attention.slopes = weights.keep(std::move(slopes));
}

FeedForwardSpec Builder::gated_feed_forward(std::size_t layer, Activation activation) {
  return gated_feed_forward(layer, activation, sizes.feed_forward[layer]);
}

FeedForwardSpec Builder::gated_feed_forward(std::size_t layer, Activation activation, std::size_t inner) {
  FeedForwardSpec f;
  f.activation.kind = activation;
  if (weights.contains(name(layer, "ffn_gate.weight"))) {
    f.gate = weights.matrix(name(layer, "ffn_gate"), inner, sizes.width);
    f.up = weights.matrix(name(layer, "ffn_up"), inner, sizes.width);
  } else {
    const Matrix fused = weights.matrix(name(layer, "ffn_up"), 2 * inner, sizes.width);
    f.gate = fused.slice(0, inner);
    f.up = fused.slice(inner, inner);
  }
  f.down = weights.matrix(name(layer, "ffn_down"), sizes.width, inner);
  return f;
}

FeedForwardSpec Builder::plain_feed_forward(std::size_t layer, Activation activation) {
  FeedForwardSpec f;
  f.activation.kind = activation;
  f.up = weights.matrix(name(layer, "ffn_up"), sizes.feed_forward[layer], sizes.width);
  f.down = weights.matrix(name(layer, "ffn_down"), sizes.width, sizes.feed_forward[layer]);
  return f;
}

}  // namespace hk::models
