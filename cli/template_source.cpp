// Finding templates and special tokens.
#include "cli/template_source.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "cli/streams.h"
#include "tokenizer/jinja/json.h"

namespace hk::cli {
namespace {

constexpr std::size_t kMostTemplate = std::size_t{16} << 20;

std::string known_names() {
  std::string out;
  for (const auto name : tokenizer::builtin_template_names()) out.append(out.empty() ? "" : ", ").append(name);
  return out;
}

}  // namespace

void TemplateOptions::add_to(CLI::App& command) {
  auto* file_option =
      command.add_option("--chat-template-file", file, "Use the Jinja template in this file")->type_name("FILE");
  command
      .add_option("--chat-template", name,
                  fmt::format("Use a template by name: {}; or a Jinja template itself", known_names()))
      ->type_name("NAME")
      ->excludes(file_option);
}

std::optional<tokenizer::ChatTemplate> TemplateOptions::chosen() const {
  if (!file.empty()) return tokenizer::ChatTemplate::parse(read_text(file, kMostTemplate), file);
  if (name.empty()) return std::nullopt;
  // No name holds a brace, every template does.
  if (name.find('{') != std::string::npos) return tokenizer::ChatTemplate::parse(name, "of --chat-template");
  const auto source = tokenizer::find_builtin_template(name);
  if (!source)
    throw Error(fmt::format("--chat-template '{}': no template has this name; there are {}", name, known_names()),
                ErrorKind::kUsage);
  return tokenizer::ChatTemplate::parse(*source, name);
}

tokenizer::ChatTemplate TemplateOptions::chosen_or(const engine::ModelReader& reader) const {
  auto given = chosen();
  return given ? std::move(*given) : read_template(reader);
}

tokenizer::ChatTemplate read_template(const engine::ModelReader& reader) {
  const auto source = reader.metadata().string("tokenizer.chat_template");
  if (!source)
    throw Error(
        fmt::format("{}: the model has no chat template (tokenizer.chat_template); give one with "
                    "--chat-template-file FILE or --chat-template NAME ({})",
                    reader.path(), known_names()));
  return tokenizer::ChatTemplate::parse(*source, fmt::format("of {}", reader.path()));
}

std::vector<std::pair<std::string, std::string>> parse_template_variables(const std::string& json) {
  std::vector<std::pair<std::string, std::string>> variables;
  if (json.empty()) return variables;
  try {
    const auto object = tokenizer::jinja::parse_json(json);
    if (!object.is_dict()) throw Error("expected an object, such as {\"name\": true}");
    for (const auto& [name, value] : object.as_dict().entries())
      variables.emplace_back(name.view(), tokenizer::jinja::dump_json(value, {}).view());
  } catch (const Error& error) {
    throw Error(fmt::format("--chat-template-kwargs: {}", error.what()), ErrorKind::kUsage);
  }
  return variables;
}

std::vector<std::pair<std::string, std::string>> read_special_tokens(const engine::ModelReader& reader) {
  static constexpr std::pair<const char*, const char*> kTokens[] = {
      {"bos_token", "tokenizer.ggml.bos_token_id"},       {"eos_token", "tokenizer.ggml.eos_token_id"},
      {"unk_token", "tokenizer.ggml.unknown_token_id"},   {"pad_token", "tokenizer.ggml.padding_token_id"},
      {"sep_token", "tokenizer.ggml.seperator_token_id"}, {"cls_token", "tokenizer.ggml.cls_token_id"},
      {"mask_token", "tokenizer.ggml.mask_token_id"},
  };
  std::vector<std::pair<std::string, std::string>> out;
  const auto texts = reader.metadata().strings("tokenizer.ggml.tokens");
  if (!texts) return out;
  for (const auto& [variable, key] : kTokens) {
    const auto id = reader.metadata().integer(key);
    if (!id || *id < 0) continue;
    if (static_cast<std::uint64_t>(*id) >= texts->size())
      throw Error(
          fmt::format("{}: {} is {}, but the vocabulary has {} tokens", reader.path(), key, *id, texts->size()));
    out.emplace_back(variable, (*texts)[static_cast<std::size_t>(*id)]);
  }
  return out;
}

}  // namespace hk::cli
