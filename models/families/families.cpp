// The families this engine knows (see families.h).
#include "models/families/families.h"

namespace hk::models {

namespace {

constexpr Family kFamilies[] = {
    {"llama", describe_llama},
    {"mistral3", describe_mistral3},
    {"qwen", describe_qwen},
    {"qwen2", describe_qwen2},
    {"qwen2vl", describe_qwen2},
    {"qwen3", describe_qwen3},
    {"qwen3vl", describe_qwen3},
    {"gemma", describe_gemma},
    {"gemma2", describe_gemma2},
    {"gemma3", describe_gemma3},
    {"phi2", describe_phi2},
    {"phi3", describe_phi3},
    {"chatglm", describe_chatglm},
    {"glm4", describe_glm4},
    {"granite", describe_granite},
    {"minicpm", describe_minicpm},
    {"smollm3", describe_smollm3},
    {"olmo", describe_olmo},
    {"olmo2", describe_olmo2},
    {"exaone", describe_exaone},
    {"exaone4", describe_exaone4},
    {"command-r", describe_command_r},
    {"cohere2", describe_cohere2},
    {"internlm2", describe_llama},
    {"ernie4_5", describe_llama},
    {"xverse", describe_llama},
    {"seed_oss", describe_seed_oss},
    {"pangu-embedded", describe_pangu},
    {"hunyuan-dense", describe_hunyuan_dense},
    {"openelm", describe_openelm},
    {"bitnet", describe_bitnet},
    {"bitnet-b1.58", describe_bitnet_b158},
    {"bitnet-25", describe_bitnet_b158},
    {"apertus", describe_apertus},
    {"arcee", describe_arcee},
    {"nemotron", describe_nemotron},
    {"starcoder", describe_gpt2},
    {"starcoder2", describe_starcoder2},
    {"codeshell", describe_codeshell},
    {"gpt2", describe_gpt2},
    {"gptneox", describe_gptneox},
    {"falcon", describe_falcon},
    {"stablelm", describe_stablelm},
    {"orion", describe_orion},
    {"baichuan", describe_baichuan},
    {"bloom", describe_bloom},
    {"mpt", describe_mpt},
    {"refact", describe_refact},
    {"jais", describe_jais},
    {"plamo", describe_plamo},
    {"plamo3", describe_plamo3},
};

}  // namespace

std::span<const Family> families() { return kFamilies; }

const Family* find_family(std::string_view architecture) {
  for (const Family& family : kFamilies) {
    if (family.architecture == architecture) return &family;
  }
  return nullptr;
}

}  // namespace hk::models
