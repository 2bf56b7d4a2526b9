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

void describe_apertus(Builder& builder);
void describe_arcee(Builder& builder);
void describe_baichuan(Builder& builder);
void describe_bitnet(Builder& builder);
void describe_bitnet_b158(Builder& builder);
void describe_bloom(Builder& builder);
void describe_chatglm(Builder& builder);
void describe_codeshell(Builder& builder);
void describe_cohere2(Builder& builder);
void describe_command_r(Builder& builder);
void describe_exaone(Builder& builder);
void describe_exaone4(Builder& builder);
void describe_falcon(Builder& builder);
void describe_gemma(Builder& builder);
void describe_gemma2(Builder& builder);
void describe_gemma3(Builder& builder);
void describe_glm4(Builder& builder);
void describe_gpt2(Builder& builder);
void describe_gptneox(Builder& builder);
void describe_granite(Builder& builder);
void describe_hunyuan_dense(Builder& builder);
void describe_jais(Builder& builder);
void describe_llama(Builder& builder);
void describe_minicpm(Builder& builder);
void describe_mistral3(Builder& builder);
void describe_mpt(Builder& builder);
void describe_nemotron(Builder& builder);
void describe_olmo(Builder& builder);
void describe_olmo2(Builder& builder);
void describe_openelm(Builder& builder);
void describe_orion(Builder& builder);
void describe_pangu(Builder& builder);
void describe_phi2(Builder& builder);
void describe_phi3(Builder& builder);
void describe_plamo(Builder& builder);
void describe_plamo3(Builder& builder);
void describe_qwen(Builder& builder);
void describe_qwen2(Builder& builder);
void describe_qwen3(Builder& builder);
void describe_refact(Builder& builder);
void describe_seed_oss(Builder& builder);
void describe_smollm3(Builder& builder);
void describe_stablelm(Builder& builder);
void describe_starcoder2(Builder& builder);

}  // namespace hk::models
