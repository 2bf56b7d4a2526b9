// The two forms of answers (see answer_writer.h).
#include "cli/batch/answer_writer.h"

#include <fmt/format.h>

#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>
#include <span>

#include "cli/token_scores.h"

namespace hk::cli {
namespace {

using engine::TokenScore;

/// Everything the parts of an answer need.
struct Writer {
  const AnswerShape& shape;
  const engine::Response& response;
  const tokenizer::Tokenizer& tokenizer;

  Json scores(std::span<const TokenScore> tokens, const char* alternatives, bool bytes) const {
    return token_scores_json(tokens, tokenizer, {.alternatives = alternatives, .bytes = bytes});
  }
};

double milliseconds(double seconds) { return std::round(seconds * 1e6) / 1e3; }

Json timings(const engine::Response& response) {
  return {{"cached_tokens", response.cached_tokens},
          {"waited_ms", milliseconds(response.waited_seconds)},
          {"prefill_ms", milliseconds(response.prefill_seconds)},
          {"decode_ms", milliseconds(response.decode_seconds)}};
}

// ---- native ----

Json native_answer(const Writer& writer, const engine::Answer& answer) {
  Json out{{"text", writer.shape.echoed + answer.text}, {"finish_reason", engine::finish_reason_name(answer.reason)}};
  if (!answer.stop.empty()) out["stop"] = answer.stop;
  if (writer.shape.tokens) out["tokens"] = answer.tokens;
  if (writer.shape.token_scores) out["logprobs"] = writer.scores(answer.scores, "top", false);
  out["seed"] = answer.seed;
  return out;
}

Json native_score(const Writer& writer, const engine::TextScore& score) {
  Json out{{"logprob", score.logprob}, {"token_count", score.tokens.size()}, {"greedy", score.greedy}};
  if (writer.shape.token_scores) out["logprobs"] = writer.scores(score.tokens, "top", false);
  return out;
}

Json native(const Writer& writer) {
  const AnswerShape& shape = writer.shape;
  const engine::Response& response = writer.response;
  Json out{{"id", Json::parse(shape.id_json)}, {"line", shape.line}};
  const auto add_all = [&](const char* name, const auto& items, auto make) {
    Json list = Json::array();
    for (const auto& item : items) list.push_back(make(writer, item));
    out[name] = std::move(list);
  };
  if (shape.scored) {
    if (shape.list) {
      add_all("scores", response.scores, native_score);
    } else {
      out["score"] = native_score(writer, response.scores.front());
    }
  } else if (shape.list) {
    add_all("choices", response.answers, native_answer);
  } else {
    out.update(native_answer(writer, response.answers.front()));
  }
  if (!shape.scored && shape.echo && shape.token_scores)
    out["prompt_logprobs"] = writer.scores(response.prompt_scores, "top", false);
  if (!shape.scored && shape.tokens) out["prompt_tokens"] = shape.prompt;
  out["usage"] = {{"prompt_tokens", response.prompt_tokens}, {"completion_tokens", response.generated_tokens}};
  out["timings"] = timings(response);
  if (!shape.metadata.empty()) out["metadata"] = Json::parse(shape.metadata);
  return out;
}

// ---- OpenAI ----

const char* openai_reason(engine::FinishReason reason) {
  const bool length = reason == engine::FinishReason::kLength || reason == engine::FinishReason::kContextFull;
  return length ? "length" : "stop";
}

/// The older form: parallel lists over the tokens, the prompt's first with echo.
Json completion_logprobs(const Writer& writer, const engine::Answer& answer) {
  Json tokens = Json::array(), chances = Json::array(), top = Json::array(), offsets = Json::array();
  std::size_t offset = 0;
  const auto add = [&](engine::TokenId id, const TokenScore* score) {
    const std::string piece = writer.tokenizer.piece(id);
    tokens.push_back(piece);
    offsets.push_back(offset);
    offset += piece.size();
    if (score == nullptr) {
      chances.push_back(nullptr);
      top.push_back(nullptr);
      return;
    }
    chances.push_back(score->token.logprob);
    Json best = Json::object();
    for (const auto& other : score->alternatives) best[writer.tokenizer.piece(other.id)] = other.logprob;
    top.push_back(std::move(best));
  };
  if (writer.shape.echo)
    for (std::size_t i = 0; i < writer.shape.prompt.size(); ++i)
      add(writer.shape.prompt[i], i == 0 ? nullptr : &writer.response.prompt_scores[i - 1]);
  for (const auto& score : answer.scores) add(score.token.id, &score);
  return {{"tokens", tokens}, {"token_logprobs", chances}, {"top_logprobs", top}, {"text_offset", offsets}};
}

Json openai_choice(const Writer& writer, const engine::Answer& answer, std::size_t index) {
  Json out{{"index", index}};
  Json logprobs = nullptr;
  if (writer.shape.form == AnswerForm::kChatCompletion) {
    out["message"] = {{"role", "assistant"}, {"content", answer.text}};
    if (writer.shape.token_scores)
      logprobs = Json::object({{"content", writer.scores(answer.scores, "top_logprobs", true)}});
  } else {
    out["text"] = writer.shape.echoed + answer.text;
    if (writer.shape.token_scores) logprobs = completion_logprobs(writer, answer);
  }
  out["logprobs"] = std::move(logprobs);
  out["finish_reason"] = openai_reason(answer.reason);
  return out;
}

Json openai(const Writer& writer, std::string_view model) {
  const engine::Response& response = writer.response;
  const bool chat = writer.shape.form == AnswerForm::kChatCompletion;
  Json choices = Json::array();
  for (std::size_t i = 0; i < response.answers.size(); ++i)
    choices.push_back(openai_choice(writer, response.answers[i], i));
  const std::string name = fmt::format("batch_req_{}", writer.shape.line);
  Json body{{"id", fmt::format("{}-{}", chat ? "chatcmpl" : "cmpl", writer.shape.line)},
            {"object", chat ? "chat.completion" : "text_completion"},
            {"created", std::time(nullptr)},
            {"model", model},
            {"choices", std::move(choices)},
            {"usage",
             {{"prompt_tokens", response.prompt_tokens},
              {"completion_tokens", response.generated_tokens},
              {"total_tokens", response.prompt_tokens + response.generated_tokens},
              {"prompt_tokens_details", Json::object({{"cached_tokens", response.cached_tokens}})}}},
            {"timings", timings(response)}};
  return {{"id", name},
          {"custom_id", Json::parse(writer.shape.id_json)},
          {"response", {{"status_code", 200}, {"request_id", name}, {"body", std::move(body)}}},
          {"error", nullptr}};
}

}  // namespace

std::string answer_line(const AnswerShape& shape, const engine::Response& response,
                        const tokenizer::Tokenizer& tokenizer, std::string_view model) {
  const Writer writer{shape, response, tokenizer};
  return json_text(shape.form == AnswerForm::kNative ? native(writer) : openai(writer, model));
}

std::string error_line(const AnswerShape& shape, std::string_view type, std::string_view sentence) {
  if (shape.form == AnswerForm::kNative)
    return json_text(Json{
        {"id", Json::parse(shape.id_json)}, {"line", shape.line}, {"error", {{"type", type}, {"message", sentence}}}});
  return json_text(Json{{"id", fmt::format("batch_req_{}", shape.line)},
                        {"custom_id", Json::parse(shape.id_json)},
                        {"response", nullptr},
                        {"error", {{"code", type}, {"message", sentence}}}});
}

}  // namespace hk::cli
