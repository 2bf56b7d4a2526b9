// Mamba 1 and 2, and their hybrids with attention: Jamba, Granite 4 H, Nemotron H, Falcon H1.
#include <utility>

#include "models/families/families.h"

namespace hk::models {

namespace {

void describe_pure(Builder& b, ScanSpec (Builder::*scan)(std::size_t)) {
  b.read_sizes(NormKind::kRms);
  b.embedding();
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    LayerSpec layer;
    layer.mixer = MixerKind::kScan;
    layer.mixer_norm = b.norm(Builder::name(i, "attn_norm"), b.sizes.width);
    layer.scan = (b.*scan)(i);
    layer.feed_forward_kind = FeedForwardKind::kNone;
    b.spec.layers.push_back(std::move(layer));
  }
  b.output();
}

/// Attention where the layer has kv heads, else a scan.
void set_mixer(Builder& b, LayerSpec& layer, std::size_t i, ScanSpec (Builder::*scan)(std::size_t)) {
  layer.mixer_norm = b.norm(Builder::name(i, "attn_norm"), b.sizes.width);
  if (b.sizes.kv_heads[i] != 0) {
    layer.attention = b.attention(i);
  } else {
    layer.mixer = MixerKind::kScan;
    layer.scan = (b.*scan)(i);
  }
}

}  // namespace

void describe_mamba(Builder& b) { describe_pure(b, &Builder::channel_scan); }
void describe_mamba2(Builder& b) { describe_pure(b, &Builder::scan); }

/// Attention knows no positions; layers with a router are mixtures.
void describe_jamba(Builder& b) {
  b.read_sizes(NormKind::kRms);
  b.embedding();
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    LayerSpec layer;
    set_mixer(b, layer, i, &Builder::channel_scan);
    layer.feed_forward_norm = b.norm(Builder::name(i, "ffn_norm"), b.sizes.width);
    if (b.weights.contains(Builder::name(i, "ffn_gate_inp.weight"))) {
      Builder::set_experts(layer, b.experts(i, {Gating::kSoftmax, false}));
    } else {
      layer.feed_forward = b.gated_feed_forward(i, Activation::kSilu);
    }
    b.spec.layers.push_back(std::move(layer));
  }
  b.output();
}

/// Granite's factors; attention is rotated only in files that say so.
void describe_granite_hybrid(Builder& b) {
  b.read_sizes(NormKind::kRms);
  b.embedding();
  b.spec.embedding_scale = static_cast<float>(b.keys.positive_or("embedding_scale", 1));
  const auto residual = static_cast<float>(b.keys.positive_or("residual_scale", 1));
  const bool rotated = b.keys.flag_or("rope.scaling.finetuned", false);
  const std::size_t rope = rotated ? b.rope() : 0;
  const RopeStyle style = read_rope_style(b.keys, RopeStyle::kAdjacent);
  const bool mixture = b.keys.count_or("expert_count", 0) != 0;
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    LayerSpec layer;
    set_mixer(b, layer, i, &Builder::scan);
    if (rotated) layer.attention.rope = rope;
    layer.attention.rope_style = style;
    layer.residual_scale = residual;
    layer.feed_forward_norm = b.norm(Builder::name(i, "ffn_norm"), b.sizes.width);
    if (mixture) {
      ExpertsSpec experts = b.experts(i, {Gating::kSoftmax, true});
      b.shared_expert(experts, i, b.keys.count_or("expert_shared_feed_forward_length", 0));
      Builder::set_experts(layer, std::move(experts));
    } else {
      layer.feed_forward = b.gated_feed_forward(i, Activation::kSilu);
    }
    b.spec.layers.push_back(std::move(layer));
  }
  b.output(1 / b.keys.positive_or("logit_scale", 1));
}

/// Each layer is one thing: a scan, attention without positions, or a feed-forward.
void describe_nemotron_h(Builder& b) {
  b.read_sizes(NormKind::kRms);
  b.embedding();
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    LayerSpec layer;
    if (b.sizes.feed_forward[i] == 0) {
      set_mixer(b, layer, i, &Builder::scan);
      layer.feed_forward_kind = FeedForwardKind::kNone;
    } else {
      layer.mixer = MixerKind::kNone;
      layer.feed_forward_norm = b.norm(Builder::name(i, "attn_norm"), b.sizes.width);
      if (b.weights.contains(Builder::name(i, "ffn_gate_inp.weight"))) {
        ExpertsSpec experts = b.experts(i, {Gating::kSigmoid, false, Activation::kRelu2, false});
        b.shared_expert(experts, i, b.shared_width(i, 0));
        Builder::set_experts(layer, std::move(experts));
      } else {
        layer.feed_forward = b.plain_feed_forward(i, Activation::kRelu2);
      }
    }
    b.spec.layers.push_back(std::move(layer));
  }
  b.output();
}

/// Attention and a scan side by side in every layer.
void describe_falcon_h1(Builder& b) {
  b.read_sizes(NormKind::kRms);
  b.embedding();
  const std::size_t rope = b.rope();
  const RopeStyle style = read_rope_style(b.keys, RopeStyle::kHalves);
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    LayerSpec layer;
    layer.mixer = MixerKind::kAttentionAndScan;
    layer.mixer_norm = b.norm(Builder::name(i, "attn_norm"), b.sizes.width);
    layer.attention = b.attention(i);
    layer.attention.rope = rope;
    layer.attention.rope_style = style;
    layer.scan = b.scan(i);
    layer.feed_forward_norm = b.bare_named_norm(Builder::name(i, "ffn_norm"), b.sizes.width);
    layer.feed_forward = b.gated_feed_forward(i, Activation::kSilu);
    b.spec.layers.push_back(std::move(layer));
  }
  b.output();
}

}  // namespace hk::models
