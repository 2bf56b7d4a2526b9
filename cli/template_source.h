// Where a chat template and the special tokens it writes come from: a model file, a file of the user, or a name.
//
// Layer: cli. Nothing is guessed: a model without a template is an error that says what to do.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/container/model_reader.h"
#include "tokenizer/chat_template.h"

namespace CLI {
class App;
}

namespace hk::cli {

/// --chat-template-file and --chat-template, declared once.
struct TemplateOptions {
  std::string file;
  std::string name;

  void add_to(CLI::App& command);
  /// The template the user asked for; nullopt when none was. Throws hk::Error.
  std::optional<tokenizer::ChatTemplate> chosen() const;
  /// The template the user asked for, else the model's. Throws hk::Error.
  tokenizer::ChatTemplate chosen_or(const engine::ModelReader& reader) const;
};

/// The template in the model's metadata (tokenizer.chat_template). Throws hk::Error when there is none.
tokenizer::ChatTemplate read_template(const engine::ModelReader& reader);

/// A JSON object of further variables of a template, as names and JSON texts; "" is none. Throws hk::Error (usage).
std::vector<std::pair<std::string, std::string>> parse_template_variables(const std::string& json);

/// bos_token, eos_token, ... with their texts, as far as the vocabulary names them.
std::vector<std::pair<std::string, std::string>> read_special_tokens(const engine::ModelReader& reader);

}  // namespace hk::cli
