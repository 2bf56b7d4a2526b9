// Writes the seed inputs of all fuzz targets: make_seeds FOLDER makes FOLDER/<target>/<number>.
//
// Seeds are small and made here, so that the repository holds no binary files: enough of each format that mutations
// start behind its front door.
#include <cstddef>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/container/appendix.h"
#include "engine/container/hk_writer.h"
#include "kernels/quant/format.h"
#include "kernels/quant/sample_blocks.h"
#include "tests/fuzz/byte_model.h"
#include "tokenizer/chat_template.h"

namespace {

namespace engine = hk::engine;
namespace kernels = hk::kernels;

class SeedFolder {
 public:
  SeedFolder(const std::filesystem::path& root, const char* target) : folder_(root / target) {
    std::filesystem::create_directories(folder_);
  }
  std::filesystem::path next() { return folder_ / std::to_string(++count_); }
  void add(std::string_view bytes) {
    std::ofstream(next(), std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  void add(std::span<const std::byte> bytes) {
    add(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }

 private:
  std::filesystem::path folder_;
  int count_ = 0;
};

void jinja_seeds(SeedFolder seeds) {
  for (const auto name : hk::tokenizer::builtin_template_names())
    seeds.add(*hk::tokenizer::find_builtin_template(name));
  seeds.add("{%- macro f(a, b=2) -%}{{ a ~ b }}{%- endmacro -%}{{ f(1) }}{{ f(a=x, b=[1, 2.5]) }}");
  seeds.add(
      "{% set ns = namespace(i=0) %}{% for m in messages if m.role != 'system' recursive %}{% set ns.i = ns.i + 1 "
      "%}{{ loop.index0 }}{{ loop.cycle('a', 'b') }}{% else %}none{% endfor %}{{ ns.i }}");
  seeds.add(
      "{{ d | dictsort | map(attribute=0) | join(',') }}{{ l | sort(reverse=true) | tojson(indent=2) }}{{ x[1:-1:2] "
      "}}{{ '%5.2f' % f }}{{ '{:>8}'.format(n) }}");
  seeds.add(
      "{{ messages | selectattr('role', 'equalto', 'user') | list | length }}{{ big // 7 ** 3 % 1000 }}{{ x | "
      "replace('a', 'b') | title }}{{ strftime_now('%Y-%m-%d') }}{# c #}{% raw %}{{ }}{% endraw %}");
  seeds.add(std::string_view("{{ a.b[0] is defined and q | default('x') }}\0{\"a\": {\"b\": [1]}}", 57));
}

void json_seeds(SeedFolder seeds) {
  for (
      const char* text :
      {R"(["a", "\u00e9\n", ""])", "[1, -2, 2147483647]", "[0.5, 1e-3, -0]", "[[1], {\"a\": []}, null]",
       R"({"role": "user", "content": [{"type": "text", "text": "\ud83d\ude00"}], "n": 123456789012345678901234567890})",
       "  {} ", "[1e400, NaN]", "\xEF\xBB\xBF[true, false]"})
    seeds.add(text);
}

/// The first byte picks how lines are read; '@' is the usual way, 'A' to '_' are the others.
void request_seeds(SeedFolder seeds) {
  const std::string every_field =
      R"({"id":"f","prompt":"ab","max_tokens":3,"stop":["x","yz"],"n":2,"seed":7,"temperature":0.5,"top_k":5,"top_p":0.9,)"
      R"("min_p":0.1,"typical_p":0.9,"top_n_sigma":1,"xtc_probability":0.5,"xtc_threshold":0.1,"repeat_penalty":1.1,)"
      R"("repeat_last_n":8,"frequency_penalty":0.1,"presence_penalty":0.1,"dynatemp_range":0.1,"dry_multiplier":0.8,)"
      R"("dry_sequence_breakers":["\n"],"mirostat":2,"mirostat_tau":4,"mirostat_eta":0.1,"min_keep":1,)"
      R"("samplers":["top_k","temperature"],"logit_bias":{"5":-1.5,"6":"-inf"},"ignore_eos":true,"logprobs":2,"echo":true,)"
      R"("return_tokens":true,"parse_special":true,"add_special":false,"show_special":true,"metadata":{"a":[1,null]}})";
  const std::string chat =
      R"({"id":1,"messages":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"<s>"}]},)"
      R"({"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f","arguments":{"x":1}}}]}],"tools":[{"a":1}],)"
      R"("documents":[],"chat_template_kwargs":{"k":true},"add_generation_prompt":false})";
  const std::string score = R"({"id":2,"mode":"score","prompt":"ab","continuations":["c","de"],"logprobs":1})"
                            "\n"
                            R"({"id":3,"mode":"score","tokens":[1,2],"continuation_tokens":[3,4]})"
                            "\n"
                            R"({"id":4,"mode":"score","prompt":"abc"})";
  const std::string openai =
      R"({"custom_id":"o","method":"POST","url":"/v1/chat/completions","body":{"model":"m","messages":[{"role":"user",)"
      R"("content":"x"}],"max_completion_tokens":2,"logprobs":true,"top_logprobs":2,"n":2,"response_format":{"type":"text"}}})"
      "\n"
      R"({"custom_id":"p","body":{"prompt":[1,2,3],"echo":true,"logprobs":1,"max_tokens":0,"best_of":1,"stream":false}})"
      "\n"
      R"({"custom_id":"q","url":"/v1/completions","body":{"prompt":["a"],"stop":"b","tools":[],"tool_choice":"none"}})";
  const std::string broken =
      "{\"id\":\"f\"}\n{\"id\":\"f\",\"prompt\":1}\n[\n\n{\"prompt\":\"\\ud800\"}\n{\"tokens\":[-1,9e9]}";
  for (const std::string& lines : {every_field, chat, score, openai, broken, every_field + "\n" + chat + "\n" + score})
    seeds.add("@" + lines + "\n");
  seeds.add("ASome text\nand more\r\n\n");
  seeds.add("BLine\n{\"prompt\":\"chat\"}\n");
  seeds.add(R"(p{"prompt":"x","a":[{"b":"c"}],"logprobs":0})");
}

void tokenizer_seeds(SeedFolder seeds) {
  const std::string_view text = "ab Ab12 345678\n\n  caf\xC3\xA9 \xE4\xBD\xA0 <|a|> \xF0\x9F\x98\x80 don't\t\xFF\xC3";
  constexpr int kSubjects = 64;  // more than there are vocabularies: their numbers wrap around
  for (int subject = 0; subject < kSubjects; ++subject)
    seeds.add(std::string(1, static_cast<char>(subject)) + static_cast<char>(subject % 8) + std::string(text));
}

void gguf_seeds(SeedFolder& seeds) {
  for (const std::uint32_t version : {2U, 3U}) {
    auto builder = hk::fuzz::byte_model();
    builder.version = version;
    builder.u32("general.alignment", 32).scalar("a.f32", 6, 1.5F).scalar("a.bool", 7, std::uint8_t{1});
    builder.scalar("a.f64", 12, 0.5).scalar("a.i64", 11, std::int64_t{-5});
    builder.array("a.floats", 6, std::vector<float>{1, 2}).array("a.bytes", 0, std::vector<std::uint8_t>{1, 2, 3});
    for (const std::uint32_t type : {0U, 1U, 2U, 8U, 12U, 20U}) {
      const auto* format = kernels::find_gguf_format(type);
      builder.tensor("t" + std::to_string(type), type, {256, 2},
                     hk::test::pattern_bytes(512 / format->block_elements * format->block_bytes));
    }
    seeds.add(builder.build());
  }
  hk::test::GgufBuilder small;
  small.text("general.architecture", "llama").scalar("split.count", 2, std::uint16_t{2});
  small.scalar("split.no", 2, std::uint16_t{0}).tensor("x", 0, {2}, hk::test::pattern_bytes(8));
  seeds.add(small.build());
}

/// Bytes of a row of 256 values.
std::uint64_t payload_bytes(const kernels::Format& format) {
  if (format.block_bytes != 0) return 256 / format.block_elements * format.block_bytes;
  switch (format.type) {
    case kernels::StorageType::kDQ4:
      return 128;
    case kernels::StorageType::kDQ8:
      return 256;
    case kernels::StorageType::kDQT:
      return 64;
    case kernels::StorageType::kSparse2_4:
      return 544;
    default:
      return 160;  // readers of the others look for themselves
  }
}

/// One tensor of every type that a file can hold with made-up bytes.
void hk_seeds(SeedFolder& seeds) {
  engine::MetadataBuilder metadata;
  metadata.add_string("general.architecture", "llama");
  metadata.add_integer("llama.block_count", 1);
  metadata.add_number("a", 0.5);
  metadata.add_boolean("b", true);
  metadata.add_json("c", R"({"x": [1, "y"]})");
  metadata.add_json("tokenizer.ggml.tokens", R"(["<unk>", "a", "b"])");
  metadata.add_floats("tokenizer.ggml.scores", std::vector<float>{0, -1, -2});
  metadata.add_string("tokenizer.ggml.model", "llama");
  const auto write = [&](const std::string& path, std::span<const engine::TensorPlan> plans) {
    engine::HkWriter writer(path, {.alignment = 64}, metadata, {plans.begin(), plans.end()});
    for (std::size_t i = 0; i < plans.size(); ++i) {
      writer.write_data(i, hk::test::pattern_bytes(plans[i].data_size));
      const auto other = [&](engine::HkWriter::Stream stream, std::uint64_t size) {
        if (size != 0) writer.write(i, stream, 0, hk::test::pattern_bytes(size));
      };
      other(engine::HkWriter::Stream::kScales, plans[i].scale_size);
      other(engine::HkWriter::Stream::kResidual, plans[i].residual_size);
    }
    writer.finish();
  };
  std::vector<engine::TensorPlan> all;
  for (const auto& format : kernels::formats()) {
    engine::TensorPlan plan;
    plan.name = "t." + std::string(format.name);
    plan.type = format.type;
    plan.shape = {1, 256};
    plan.data_size = payload_bytes(format);
    if (format.storage_class == kernels::StorageClass::kVirtual) continue;
    if (format.storage_class == kernels::StorageClass::kDual) plan.scale_size = 32;
    try {
      write(seeds.next().string(), std::vector{plan});
      all.push_back(plan);
    } catch (const hk::Error&) {
      // The writer knows no such size of this type: nothing to begin with.
    }
  }
  const std::string path = seeds.next().string();
  write(path, all);
  const auto data = hk::test::pattern_bytes(40);
  engine::append_record(path, {.name = "first", .target = "t.f32", .data = data});
  engine::append_record(path,
                        {.type = engine::AppendixType::kDeltaPatch, .generation = 1, .name = "second", .data = data});
}

void container_seeds(SeedFolder seeds) {
  gguf_seeds(seeds);
  hk_seeds(seeds);
  seeds.add(R"({"metadata": {"total_size": 8}, "weight_map": {"x": "model-00001-of-00002.hk"}})");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: make_seeds FOLDER\n", stderr);
    return 2;
  }
  try {
    const std::filesystem::path root = argv[1];
    jinja_seeds({root, "jinja"});
    json_seeds({root, "json"});
    request_seeds({root, "requests"});
    tokenizer_seeds({root, "tokenizer"});
    container_seeds({root, "container"});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "make_seeds: %s\n", error.what());
    return 1;
  }
  return 0;
}
