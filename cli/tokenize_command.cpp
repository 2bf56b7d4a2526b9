// hk-run tokenize and detokenize: text to token ids and back with a model's vocabulary, once or line by line.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"
#include "cli/base64.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/streams.h"
#include "cli/text.h"
#include "engine/container/model_reader.h"
#include "engine/container/vocabulary.h"
#include "tokenizer/tokenizer.h"

namespace hk::cli {
namespace {

using Json = nlohmann::ordered_json;
using tokenizer::TokenId;
using tokenizer::Tokenizer;

struct Vocabulary {
  std::unique_ptr<engine::ModelReader> reader;
  std::unique_ptr<Tokenizer> tokenizer;
};

Vocabulary open_vocabulary(const std::string& file) {
  Vocabulary opened;
  opened.reader = engine::open_model(file);
  opened.tokenizer = engine::make_tokenizer(*opened.reader);
  for (const std::string& remark : opened.tokenizer->remarks())
    write_note(fmt::format("hk-run: {}: {}", file, printable(remark)));
  return opened;
}

/// Texts that are UTF-8 as "text", others as "text_b64".
Json text_json(const std::string& text) {
  Json json;
  if (is_valid_utf8(text)) {
    json["text"] = text;
  } else {
    json["text_b64"] = to_base64(text);
  }
  return json;
}

// --- cases on standard input, one JSON object a line ---

bool flag_of(const Json& line, const char* name, bool absent) {
  const auto found = line.find(name);
  if (found == line.end()) return absent;
  if (!found->is_boolean())
    throw Error(fmt::format("\"{}\" is a {}, expected true or false", name, found->type_name()));
  return found->get<bool>();
}

std::string text_of(const Json& line) {
  const auto text = line.find("text");
  const auto packed = line.find("text_b64");
  if ((text != line.end()) == (packed != line.end())) throw Error("expected either \"text\" or \"text_b64\"");
  const Json& value = text != line.end() ? *text : *packed;
  if (!value.is_string())
    throw Error(
        fmt::format("\"{}\" is a {}, expected a string", text != line.end() ? "text" : "text_b64", value.type_name()));
  if (text != line.end()) return value.get<std::string>();
  auto bytes = from_base64(value.get_ref<const std::string&>());
  if (!bytes) throw Error("\"text_b64\" is not base64");
  return *bytes;
}

void check_id(const Tokenizer& tokens, std::int64_t id) {
  if (id < 0 || static_cast<std::uint64_t>(id) >= tokens.size())
    throw Error(fmt::format("{} is no token id: the vocabulary has 0 to {}", id, tokens.size() - 1));
}

std::vector<TokenId> ids_of(const Json& line, const Tokenizer& tokens) {
  const auto found = line.find("ids");
  if (found == line.end() || !found->is_array()) throw Error("expected \"ids\", a list of token ids");
  std::vector<TokenId> ids;
  for (const Json& id : *found) {
    if (!id.is_number_integer() || (id.is_number_unsigned() && id.get<std::uint64_t>() > INT32_MAX))
      throw Error(fmt::format("\"ids\" holds {}, which is no token id", id.dump(-1, ' ', true)));
    check_id(tokens, id.get<std::int64_t>());
    ids.push_back(id.get<TokenId>());
  }
  return ids;
}

/// Answers each line of standard input by one line. A bad line is answered by {"error": ...}; the run goes on and ends
/// with exit code 1.
void answer_lines(const std::function<Json(const Json&)>& answer) {
  const InterruptGuard guard;
  bool failed = false;
  std::size_t number = 0;
  for (std::string line; std::getline(std::cin, line);) {
    InterruptGuard::check();
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    Json reply;
    try {
      const Json parsed = Json::parse(line, nullptr, false);
      if (parsed.is_discarded()) throw Error("not valid JSON");
      if (!parsed.is_object()) throw Error(fmt::format("a JSON {}, expected an object", parsed.type_name()));
      reply = answer(parsed);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kInput) throw;
      failed = true;
      reply["error"] = fmt::format("line {}: {}", number, error.what());
    }
    // ASCII only: U+2028 and its like end a line for some readers.
    write_answer(reply.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n");
  }
  InterruptGuard::check();
  if (failed) throw CLI::RuntimeError(static_cast<int>(ErrorKind::kInput));
}

// --- tokenize ---

struct TokenizeOptions {
  std::string model;
  std::optional<std::string> text;
  std::optional<std::string> file;
  bool no_special = false;
  bool parse_special = false;
  bool json = false;
  bool jsonl = false;
};

void run_tokenize(const TokenizeOptions& options) {
  const Vocabulary vocabulary = open_vocabulary(options.model);
  const Tokenizer& tokens = *vocabulary.tokenizer;
  if (options.jsonl) {
    answer_lines([&](const Json& line) {
      Json reply;
      reply["ids"] = tokens.encode(text_of(line), {flag_of(line, "add_special", !options.no_special),
                                                   flag_of(line, "parse_special", options.parse_special)});
      return reply;
    });
    return;
  }
  const std::string text = options.text ? *options.text : read_text(options.file.value_or("-"));
  const auto ids = tokens.encode(text, {!options.no_special, options.parse_special});
  std::string out;
  if (options.json) {
    Json listed;
    listed["ids"] = ids;
    listed["pieces"] = Json::array();
    for (const TokenId id : ids) listed["pieces"].push_back(tokens.piece(id));
    out = listed.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  } else {
    for (const TokenId id : ids) out += fmt::format("{}\t{}\n", id, printable(tokens.piece(id)));
  }
  write_answer(out);
}

// --- detokenize ---

struct DetokenizeOptions {
  std::string model;
  std::vector<std::string> ids;
  bool skip_special = false;
  bool json = false;
  bool jsonl = false;
};

/// Ids separated by blanks, commas or brackets, so that a JSON list can be pasted.
void append_ids(std::string_view text, const Tokenizer& tokens, std::vector<TokenId>& ids) {
  constexpr std::string_view kBetween = " \t\r\n,[]";
  for (std::size_t at = text.find_first_not_of(kBetween); at != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(kBetween, at), text.size());
    const std::string_view word = text.substr(at, end - at);
    std::int64_t id = 0;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc() || stop != word.data() + word.size())
      throw Error(fmt::format("'{}' is no token id; expected whole numbers", printable(word)));
    check_id(tokens, id);
    ids.push_back(static_cast<TokenId>(id));
    at = text.find_first_not_of(kBetween, end);
  }
}

void run_detokenize(const DetokenizeOptions& options) {
  const Vocabulary vocabulary = open_vocabulary(options.model);
  const Tokenizer& tokens = *vocabulary.tokenizer;
  if (options.jsonl) {
    answer_lines([&](const Json& line) {
      const auto ids = ids_of(line, tokens);
      if (!flag_of(line, "piece", false))
        return text_json(tokens.decode(ids, flag_of(line, "skip_special", options.skip_special)));
      if (ids.size() != 1) throw Error(fmt::format("\"piece\" asks for one token, \"ids\" has {}", ids.size()));
      return text_json(tokens.piece(ids[0]));
    });
    return;
  }
  std::vector<TokenId> ids;
  if (options.ids.empty()) append_ids(read_text("-"), tokens, ids);
  for (const std::string& id : options.ids) append_ids(id, tokens, ids);
  std::string out = tokens.decode(ids, options.skip_special);
  if (options.json) {
    out = text_json(out).dump() + "\n";
  } else if (stdout_is_terminal()) {
    out += "\n";  // elsewhere the text is exact
  }
  write_answer(out);
}

void add_tokenize(CLI::App& app) {
  auto* command = app.add_subcommand("tokenize", "Turn text into token ids with a model's vocabulary");
  const auto options = std::make_shared<TokenizeOptions>();
  command->add_option("model", options->model, "A .hk or .gguf file; one that holds only a vocabulary will do")
      ->required();
  auto* text = command->add_option("text", options->text, "The text; absent: standard input");
  auto* file = command->add_option("-f,--file", options->file, "Read the text from this file")->excludes(text);
  command->add_flag("--no-special", options->no_special,
                    "Do not add the begin and end tokens that the vocabulary asks for (default: add them)");
  command->add_flag("--parse-special", options->parse_special,
                    "Texts of control tokens, such as <|im_end|>, become those tokens (default: they stay text)");
  auto* json = command->add_flag("--json", options->json, "Print {\"ids\": [...], \"pieces\": [...]}");
  command
      ->add_flag(
          "--jsonl", options->jsonl,
          "Answer JSON lines on standard input: {\"text\" or \"text_b64\", \"add_special\", \"parse_special\"} gives "
          "{\"ids\": [...]}; an absent field means what the options above say. A bad line gives {\"error\": sentence} "
          "and exit code 1 at the end")
      ->excludes(text)
      ->excludes(file)
      ->excludes(json);
  command->callback([options] { run_tokenize(*options); });
}

void add_detokenize(CLI::App& app) {
  auto* command = app.add_subcommand("detokenize", "Turn token ids into text with a model's vocabulary");
  const auto options = std::make_shared<DetokenizeOptions>();
  command->add_option("model", options->model, "A .hk or .gguf file; one that holds only a vocabulary will do")
      ->required();
  auto* ids =
      command->add_option("ids", options->ids, "Token ids; absent: standard input, blanks or commas between them");
  command->add_flag("--skip-special", options->skip_special, "Leave control tokens out (default: show their texts)");
  auto* json = command->add_flag("--json", options->json,
                                 "Print {\"text\": ...}, or {\"text_b64\": ...} when the bytes are not UTF-8");
  command
      ->add_flag("--jsonl", options->jsonl,
                 "Answer JSON lines on standard input: {\"ids\", \"skip_special\", \"piece\"} gives {\"text\"} or "
                 "{\"text_b64\"}; \"piece\": true is for one token as it stands in a text, specials shown and no blank "
                 "removed. A bad line gives {\"error\": sentence} and exit code 1 at the end")
      ->excludes(ids)
      ->excludes(json);
  command->callback([options] { run_detokenize(*options); });
}

}  // namespace

void add_tokenize_commands(CLI::App& app) {
  add_tokenize(app);
  add_detokenize(app);
}

}  // namespace hk::cli
