// Scores of tokens as JSON.
#include "cli/token_scores.h"

#include <nlohmann/json.hpp>
#include <string>

namespace hk::cli {
namespace {

Json chance_json(const engine::TokenChance& chance, const tokenizer::Tokenizer& tokenizer, const ScoreStyle& style) {
  const std::string piece = tokenizer.piece(chance.id);
  Json out{{"id", chance.id}, {style.text, piece}, {"logprob", chance.logprob}};
  if (style.bytes) {
    Json list = Json::array();
    for (const char c : piece) list.push_back(static_cast<unsigned char>(c));
    out["bytes"] = std::move(list);
  }
  return out;
}

}  // namespace

Json token_scores_json(std::span<const engine::TokenScore> scores, const tokenizer::Tokenizer& tokenizer,
                       const ScoreStyle& style) {
  Json out = Json::array();
  for (const auto& score : scores) {
    Json token = chance_json(score.token, tokenizer, style);
    if (!score.alternatives.empty() || style.bytes) {
      Json list = Json::array();
      for (const auto& other : score.alternatives) list.push_back(chance_json(other, tokenizer, style));
      token[style.alternatives] = std::move(list);
    }
    out.push_back(std::move(token));
  }
  return out;
}

}  // namespace hk::cli
