// LFM2, dense and with experts: gated short convolutions, attention in the layers that have kv heads.
#include <utility>

#include "models/families/families.h"

namespace hk::models {

void describe_lfm2(Builder& b) {
  b.read_sizes(NormKind::kRms);
  b.embedding();
  const std::size_t rope = b.rope();
  const RopeStyle style = read_rope_style(b.keys, RopeStyle::kHalves);
  const std::size_t kernel = b.keys.count("shortconv.l_cache");
  const bool mixture = b.keys.count_or("expert_count", 0) != 0;
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    LayerSpec layer;
    layer.mixer_norm = b.norm(Builder::name(i, "attn_norm"), b.sizes.width);
    layer.feed_forward_norm = b.norm(Builder::name(i, "ffn_norm"), b.sizes.width);
    if (b.sizes.kv_heads[i] != 0) {
      layer.attention = b.attention(i);
      layer.attention.rope = rope;
      layer.attention.rope_style = style;
      b.head_norms(layer.attention, i);
    } else {
      layer.mixer = MixerKind::kShortConvolution;
      ShortConvolutionSpec& c = layer.short_convolution;
      c.in = b.weights.matrix(Builder::name(i, "shortconv.in_proj"), 3 * b.sizes.width, b.sizes.width);
      c.convolution = b.convolution(Builder::name(i, "shortconv.conv"), kernel, b.sizes.width);
      c.out = b.weights.matrix(Builder::name(i, "shortconv.out_proj"), b.sizes.width, b.sizes.width);
    }
    if (mixture && b.has_experts(i)) {
      Builder::set_experts(layer, b.experts(i, {Gating::kSigmoid, true}));
    } else {
      layer.feed_forward = b.gated_feed_forward(i, Activation::kSilu);
    }
    b.spec.layers.push_back(std::move(layer));
  }
  // Early files call the norm before the output matrix by the embedding's name.
  const bool early = !b.weights.contains("output_norm.weight");
  b.output(b.norm(early ? "token_embd_norm" : "output_norm", b.sizes.width), 1);
}

}  // namespace hk::models
