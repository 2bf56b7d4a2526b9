// libFuzzer target: arbitrary bytes as a file of requests for `hk-run batch`, answered by a model that is a hash.
//
// The first byte picks how lines are read. What must hold: no crash, nothing thrown but hk::Error, one answer a line,
// and every answer is recognised as the answer of its request when the run is resumed.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"
#include "cli/batch/answer_writer.h"
#include "cli/batch/request_builder.h"
#include "cli/batch/request_reader.h"
#include "cli/batch/result_line.h"
#include "engine/container/vocabulary.h"
#include "engine/generate/scheduler.h"
#include "tests/engine/generate/toy_model.h"
#include "tests/fuzz/byte_model.h"
#include "tests/fuzz/memory_file.h"

namespace {

using hk::fuzz::MemoryFile;
using hk::fuzz::require;
namespace cli = hk::cli;
namespace engine = hk::engine;

// Keep an input within milliseconds: the toy model's context, and what one request may ask for.
constexpr std::size_t kContext = 64, kMostRuns = 8, kMostAlternatives = 16;

const MemoryFile& model_file() {
  static const MemoryFile file;
  const auto bytes = hk::fuzz::byte_model().build();
  file.fill(bytes.data(), bytes.size());
  return file;
}

cli::RunningModel& running() {
  static cli::RunningModel model = [] {
    cli::RunningModel made;
    made.reader = engine::open_model(model_file().path());
    made.tokenizer = engine::make_tokenizer(*made.reader);
    made.model = std::make_unique<hk::test::ToyModel>(made.tokenizer->size());
    made.sequence = {kContext, hk::kernels::KvType::kF16};
    return made;
  }();
  return model;
}

struct Way {
  bool text = false;
  cli::BatchDefaults defaults;
};

Way way(std::uint8_t choice) {
  Way chosen;
  chosen.defaults.max_tokens = 4;
  chosen.text = (choice & 1) != 0;
  chosen.defaults.chat = (choice & 2) != 0;
  chosen.defaults.parse_special = (choice & 4) != 0;
  chosen.defaults.score = (choice & 8) != 0;
  if ((choice & 16) != 0) chosen.defaults.prompt = cli::FieldTemplate("{prompt} {a.0.b}\n", "fuzz", true);
  if ((choice & 32) != 0) chosen.defaults.continuation = cli::FieldTemplate("{a}", "fuzz", true);
  return chosen;
}

bool is_small(const engine::Request& request) {
  return request.samples <= kMostRuns && request.scored.size() <= kMostRuns &&
         request.logprobs.value_or(0) <= kMostAlternatives;
}

void check_answer(const std::string& answer, const std::string& key) {
  require(answer.find('\n') == std::string::npos && hk::is_valid_utf8(answer));
  const auto result = cli::read_result_line(answer);
  require(result && result->key == key);
}

/// Errors of a request are answers too.
void answer_request(const cli::InputLine& line, cli::RequestBuilder& builder, engine::Scheduler& scheduler) {
  try {
    cli::BatchRequest request = builder.build(line);
    if (!is_small(request.request)) return;
    scheduler.submit(
        std::move(request.request), [key = line.key(), shape = std::move(request.shape)](engine::Response&& response) {
          const auto text = response.error.empty() ? cli::answer_line(shape, response, *running().tokenizer, "fuzz")
                                                   : cli::error_line(shape, "failed", response.error);
          check_answer(text, key);
        });
  } catch (const hk::Error& error) {
    check_answer(cli::error_line(cli::error_shape(line), "invalid_request", error.what()), line.key());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static const MemoryFile file;
  file.fill(data + 1, size - 1);
  Way chosen = way(data[0]);
  cli::RequestBuilder builder(running(), std::move(chosen.defaults));
  engine::Scheduler scheduler(*running().model, *running().tokenizer, nullptr,
                              {.sequence = running().sequence, .slots = 3, .step_tokens = 16});
  cli::RequestReader reader(file.path(), chosen.text, {});
  cli::InputLine line;
  while (reader.next(line) == cli::RequestReader::Event::kLine) {
    if (line.problem.empty()) {
      answer_request(line, builder, scheduler);
    } else {
      check_answer(cli::error_line(cli::error_shape(line), line.problem_type, line.problem), line.key());
    }
  }
  while (scheduler.step()) {
  }
  require(scheduler.requests() == 0);
  static_cast<hk::test::ToyModel&>(*running().model).calls.clear();  // they are kept for tests that look at them
  return 0;
}
