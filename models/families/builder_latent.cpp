// The building block of latent attention (see builder.h).
#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "models/families/builder.h"

namespace hk::models {

LayerSpec Builder::latent_layer(std::size_t i, std::optional<std::size_t> rope, RopeStyle style) {
  // Of one head; newer files give those of the cached latent as key_length and value_length.
  const std::size_t head_key = keys.positive_count_or("attention.key_length_mla", sizes.key_length);
  const std::size_t head_value = keys.positive_count_or("attention.value_length_mla", sizes.value_length);
  LayerSpec layer;
  layer.mixer = MixerKind::kLatentAttention;
  layer.mixer_norm = norm(name(i, "attn_norm"), sizes.width);
  layer.feed_forward_norm = norm(name(i, "ffn_norm"), sizes.width);
  AttentionSpec& a = layer.attention;
  LatentSpec& l = layer.latent;
  a.heads = sizes.heads[i];
  l.rank = keys.count("attention.kv_lora_rank");
  l.n_rot = sizes.n_rot;
  if (a.heads == 0 || l.n_rot >= head_key)
    keys.refuse(keys.full("rope.dimension_count"), fmt::format("{}", l.n_rot),
                fmt::format("less than the head size {}", head_key));
  l.nope = head_key - l.n_rot;
  l.value_length = head_value;
  if (weights.contains(name(i, "attn_q_a.weight"))) {
    const std::size_t q_rank = keys.count("attention.q_lora_rank");
    l.q_a = weights.matrix(name(i, "attn_q_a"), q_rank, sizes.width);
    l.q_a_norm = norm(name(i, "attn_q_a_norm"), q_rank);
    l.q = weights.matrix(name(i, "attn_q_b"), a.heads * head_key, q_rank);
  } else {
    l.q = weights.matrix(name(i, "attn_q"), a.heads * head_key, sizes.width);
  }
  l.kv_a = weights.matrix(name(i, "attn_kv_a_mqa"), l.rank + l.n_rot, sizes.width);
  l.kv_a_norm = norm(name(i, "attn_kv_a_norm"), l.rank);
  if (weights.contains(name(i, "attn_k_b.weight"))) {
    l.k_b = weights.bank(name(i, "attn_k_b"), a.heads, l.rank, l.nope);
    l.v_b = weights.bank(name(i, "attn_v_b"), a.heads, l.value_length, l.rank);
    a.kv_heads = 1;
    a.key_length = l.rank + l.n_rot;
    a.value_length = l.rank;
  } else {
    l.kv_b = weights.matrix(name(i, "attn_kv_b"), a.heads * (l.nope + l.value_length), l.rank);
    a.kv_heads = a.heads;
    a.key_length = head_key;
    a.value_length = head_value;
  }
  a.output = weights.matrix(name(i, "attn_output"), sizes.width, a.heads * l.value_length);
  a.rope = rope;
  a.rope_style = style;
  a.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(head_key)));
  a.kv_slot = spec.kv_slots.size();
  spec.kv_slots.push_back({a.kv_heads, a.key_length, a.value_length, 0});
  return layer;
}

}  // namespace hk::models
