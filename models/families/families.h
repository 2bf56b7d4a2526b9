// The families this engine knows, by general.architecture. A family is one file that fills Builder::spec.
//
// Layer: models. To add one: write families/<name>.cpp, declare it here, add its row to families.cpp.
#pragma once

#include <span>
#include <string_view>

#include "models/families/builder.h"

namespace hk::models {

struct Family {
  std::string_view architecture;
  void (*describe)(Builder& builder);
};

std::span<const Family> families();
/// Null when the architecture is unknown.
const Family* find_family(std::string_view architecture);

void describe_afmoe(Builder& builder);
void describe_apertus(Builder& builder);
void describe_arcee(Builder& builder);
void describe_arctic(Builder& builder);
void describe_baichuan(Builder& builder);
void describe_bailingmoe(Builder& builder);
void describe_bailingmoe2(Builder& builder);
void describe_bitnet(Builder& builder);
void describe_bitnet_b158(Builder& builder);
void describe_bloom(Builder& builder);
void describe_chatglm(Builder& builder);
void describe_codeshell(Builder& builder);
void describe_cohere2(Builder& builder);
void describe_command_r(Builder& builder);
void describe_dbrx(Builder& builder);
void describe_deci(Builder& builder);
void describe_deepseek(Builder& builder);
void describe_deepseek2(Builder& builder);
void describe_dots1(Builder& builder);
void describe_ernie4_5_moe(Builder& builder);
void describe_exaone(Builder& builder);
void describe_exaone4(Builder& builder);
void describe_exaone_moe(Builder& builder);
void describe_falcon(Builder& builder);
void describe_falcon_h1(Builder& builder);
void describe_gemma(Builder& builder);
void describe_gemma2(Builder& builder);
void describe_gemma3(Builder& builder);
void describe_gemma3n(Builder& builder);
void describe_gemma4(Builder& builder);
void describe_glm4(Builder& builder);
void describe_glm4moe(Builder& builder);
void describe_gpt2(Builder& builder);
void describe_gpt_oss(Builder& builder);
void describe_gptneox(Builder& builder);
void describe_granite(Builder& builder);
void describe_granite_hybrid(Builder& builder);
void describe_grok(Builder& builder);
void describe_hunyuan_dense(Builder& builder);
void describe_hunyuan_moe(Builder& builder);
void describe_jais(Builder& builder);
void describe_jamba(Builder& builder);
void describe_kimi_linear(Builder& builder);
void describe_lfm2(Builder& builder);
void describe_llama(Builder& builder);
void describe_llama4(Builder& builder);
void describe_maincoder(Builder& builder);
void describe_mamba(Builder& builder);
void describe_mamba2(Builder& builder);
void describe_mellum(Builder& builder);
void describe_mimo2(Builder& builder);
void describe_minicpm(Builder& builder);
void describe_minicpm3(Builder& builder);
void describe_minimax_m2(Builder& builder);
void describe_mistral3(Builder& builder);
void describe_mpt(Builder& builder);
void describe_nemotron(Builder& builder);
void describe_nemotron_h(Builder& builder);
void describe_olmo(Builder& builder);
void describe_olmo2(Builder& builder);
void describe_olmoe(Builder& builder);
void describe_openelm(Builder& builder);
void describe_orion(Builder& builder);
void describe_pangu(Builder& builder);
void describe_phi2(Builder& builder);
void describe_phi3(Builder& builder);
void describe_phimoe(Builder& builder);
void describe_plamo(Builder& builder);
void describe_plamo3(Builder& builder);
void describe_plm(Builder& builder);
void describe_qwen(Builder& builder);
void describe_qwen2(Builder& builder);
void describe_qwen2moe(Builder& builder);
void describe_qwen3(Builder& builder);
void describe_qwen35(Builder& builder);
void describe_qwen3moe(Builder& builder);
void describe_qwen3next(Builder& builder);
void describe_refact(Builder& builder);
void describe_rwkv6(Builder& builder);
void describe_rwkv7(Builder& builder);
void describe_seed_oss(Builder& builder);
void describe_smallthinker(Builder& builder);
void describe_smollm3(Builder& builder);
void describe_stablelm(Builder& builder);
void describe_starcoder2(Builder& builder);
void describe_step35(Builder& builder);

}  // namespace hk::models
