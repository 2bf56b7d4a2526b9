// Answers and errors as lines of JSON.
//
// Layer: cli/batch. What a request always gets the same for stands outside of "timings"; inside is what depends on the
// machine and on the company.
#pragma once

#include <string>
#include <string_view>

#include "cli/batch/request_builder.h"
#include "engine/generate/request.h"
#include "tokenizer/tokenizer.h"

namespace hk::cli {

/// One line without its end. `model` is the name that answers in OpenAI form carry.
std::string answer_line(const AnswerShape& shape, const engine::Response& response,
                        const tokenizer::Tokenizer& tokenizer, std::string_view model);
/// `type`: "malformed", "duplicate_id", "invalid_request" (the request is to blame) or "failed" (the run is).
std::string error_line(const AnswerShape& shape, std::string_view type, std::string_view sentence);

}  // namespace hk::cli
