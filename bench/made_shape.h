// Shapes of models to make up: the presets, and the tensors and metadata that a shape of a family consists of.
//
// For benchmarks: how fast a model runs depends on its shapes and formats, not on what its weights say. Tensor names,
// order and keys are those that files of these families carry.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/container/metadata_builder.h"
#include "kernels/quant/format.h"

namespace hk::bench {

struct ModelShape {
  std::string_view name;
  std::string architecture;  ///< llama or qwen3; qwen3moe with experts
  std::size_t width = 0;
  std::size_t layers = 0;
  std::size_t heads = 0;
  std::size_t kv_heads = 0;
  std::size_t head_size = 0;
  std::size_t feed_forward = 0;
  std::size_t vocabulary = 0;
  std::size_t context = 0;
  double rope_base = 10000;
  bool tied = true;
  std::size_t experts = 0;
  std::size_t experts_used = 0;
};

inline const std::vector<ModelShape>& presets() {
  static const std::vector<ModelShape> all = {
      {"llama-1b", "llama", 2048, 16, 32, 8, 64, 8192, 128256, 131072, 500000},
      {"llama-8b", "llama", 4096, 32, 32, 8, 128, 14336, 128256, 131072, 500000, false},
      {"qwen3-0.6b", "qwen3", 1024, 28, 16, 8, 128, 3072, 151936, 40960, 1000000},
      {"smol-135m", "llama", 576, 30, 9, 3, 64, 1536, 49152, 8192, 100000},
      // Qwen3-30B-A3B with a quarter of its layers.
      {"qwen3-30b-a3b", "qwen3", 2048, 12, 32, 4, 128, 768, 151936, 40960, 1000000, false, 128, 8},
  };
  return all;
}

inline const ModelShape& find_preset(std::string_view name) {
  std::string known;
  for (const ModelShape& shape : presets()) {
    if (shape.name == name) return shape;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", shape.name);
  }
  throw Error(fmt::format("there is no preset '{}'; there are {}", name, known), ErrorKind::kUsage);
}

/// Throws when no model can have this shape.
inline void check(const ModelShape& s) {
  const auto refuse = [](const std::string& why) { throw Error(why, ErrorKind::kUsage); };
  for (const auto& [name, value] : {std::pair<const char*, std::size_t>{"width", s.width},
                                    {"layers", s.layers},
                                    {"heads", s.heads},
                                    {"kv-heads", s.kv_heads},
                                    {"head-size", s.head_size},
                                    {"feed-forward", s.feed_forward},
                                    {"context", s.context}}) {
    if (value == 0 || value >= (std::size_t{1} << 24))
      refuse(fmt::format("--{}: {} is no size of a model", name, value));
  }
  if (s.heads % s.kv_heads != 0) refuse(fmt::format("{} heads cannot share {} key/value heads", s.heads, s.kv_heads));
  if (s.head_size % 2 != 0) refuse(fmt::format("--head-size: {} is odd, rotation needs pairs", s.head_size));
  if (s.vocabulary < 512 || s.vocabulary >= (std::size_t{1} << 24))
    refuse(fmt::format("--vocab: {} tokens; expected 512 to 16777215", s.vocabulary));
  if ((s.experts == 0) != (s.experts_used == 0) || s.experts_used > s.experts)
    refuse(fmt::format("--experts-used {} does not go with --experts {}", s.experts_used, s.experts));
}

/// What a tensor is for, which decides its format and what is written into it.
enum class Role { kMatrix, kEmbedding, kOutput, kRouter, kInputNorm, kHeadNorm };

struct MadeTensor {
  std::string name;
  Role role;
  std::vector<std::uint64_t> shape;
};

inline std::vector<MadeTensor> tensors_of(const ModelShape& s) {
  std::vector<MadeTensor> tensors;
  tensors.push_back({"token_embd.weight", s.tied ? Role::kOutput : Role::kEmbedding, {s.vocabulary, s.width}});
  for (std::size_t i = 0; i < s.layers; ++i) {
    const auto add = [&](const char* part, Role role, std::vector<std::uint64_t> shape) {
      tensors.push_back({fmt::format("blk.{}.{}.weight", i, part), role, std::move(shape)});
    };
    add("attn_norm", Role::kInputNorm, {s.width});
    add("attn_q", Role::kMatrix, {s.heads * s.head_size, s.width});
    add("attn_k", Role::kMatrix, {s.kv_heads * s.head_size, s.width});
    add("attn_v", Role::kMatrix, {s.kv_heads * s.head_size, s.width});
    if (s.architecture.starts_with("qwen3")) {
      add("attn_q_norm", Role::kHeadNorm, {s.head_size});
      add("attn_k_norm", Role::kHeadNorm, {s.head_size});
    }
    add("attn_output", Role::kMatrix, {s.width, s.heads * s.head_size});
    add("ffn_norm", Role::kInputNorm, {s.width});
    if (s.experts == 0) {
      add("ffn_gate", Role::kMatrix, {s.feed_forward, s.width});
      add("ffn_up", Role::kMatrix, {s.feed_forward, s.width});
      add("ffn_down", Role::kMatrix, {s.width, s.feed_forward});
    } else {
      add("ffn_gate_inp", Role::kRouter, {s.experts, s.width});
      add("ffn_gate_exps", Role::kMatrix, {s.experts, s.feed_forward, s.width});
      add("ffn_up_exps", Role::kMatrix, {s.experts, s.feed_forward, s.width});
      add("ffn_down_exps", Role::kMatrix, {s.experts, s.width, s.feed_forward});
    }
  }
  tensors.push_back({"output_norm.weight", Role::kInputNorm, {s.width}});
  if (!s.tied) tensors.push_back({"output.weight", Role::kOutput, {s.vocabulary, s.width}});
  return tensors;
}

inline void add_shape(const ModelShape& s, engine::MetadataBuilder& metadata) {
  const std::string architecture = s.experts != 0 && s.architecture == "qwen3" ? "qwen3moe" : s.architecture;
  metadata.add_string("general.architecture", architecture);
  metadata.add_string("general.name", fmt::format("made-up weights, {}", s.name));
  const auto integer = [&](const char* key, std::size_t value) {
    metadata.add_integer(fmt::format("{}.{}", architecture, key), static_cast<std::int64_t>(value));
  };
  const auto number = [&](const char* key, double value) {
    metadata.add_number(fmt::format("{}.{}", architecture, key), value);
  };
  integer("block_count", s.layers);
  integer("context_length", s.context);
  integer("embedding_length", s.width);
  integer("feed_forward_length", s.feed_forward);
  integer("attention.head_count", s.heads);
  integer("attention.head_count_kv", s.kv_heads);
  integer("attention.key_length", s.head_size);
  integer("attention.value_length", s.head_size);
  integer("rope.dimension_count", s.head_size);
  number("attention.layer_norm_rms_epsilon", 1e-5);
  number("rope.freq_base", s.rope_base);
  if (s.experts == 0) return;
  integer("expert_count", s.experts);
  integer("expert_used_count", s.experts_used);
  integer("expert_feed_forward_length", s.feed_forward);
}

/// The format for rows of `cols` values: the wished one, or one of about the same width whose blocks fit.
inline const kernels::Format& fitting(const kernels::Format& wished, std::size_t cols) {
  using kernels::StorageType;
  if (cols % wished.block_elements == 0) return wished;
  const double bits = 8.0 * wished.block_bytes / wished.block_elements;
  const StorageType small = bits > 6      ? StorageType::kQ8_0
                            : bits > 5    ? StorageType::kQ5_1
                            : bits > 4.25 ? StorageType::kQ5_0
                                          : StorageType::kIQ4_NL;
  const auto* format = kernels::find_format(small);
  return cols % format->block_elements == 0 ? *format : *kernels::find_format(StorageType::kF16);
}

}  // namespace hk::bench
