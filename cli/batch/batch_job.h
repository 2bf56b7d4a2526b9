// A run over a file of requests: reads ahead, keeps the scheduler busy, writes answers as they come.
//
// Layer: cli/batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "cli/batch/answer_file.h"
#include "cli/batch/batch_progress.h"
#include "cli/batch/request_builder.h"
#include "cli/batch/request_reader.h"
#include "cli/model_options.h"
#include "engine/generate/scheduler.h"

namespace hk::cli {

struct BatchJobOptions {
  std::string input;  ///< what the reader reads
  Shard shard;        ///< and of it
  bool ordered = false;
  bool quiet = false;
  std::size_t bytes_ahead = std::size_t{4} << 20;  ///< lines of requests on their way, besides the last one
  engine::SchedulerOptions scheduler;
};

class BatchJob {
 public:
  /// All references must outlive it.
  BatchJob(const RunningModel& running, RequestReader& reader, RequestBuilder& builder, AnswerFile& out,
           BatchJobOptions options);

  /// Until everything is answered or a signal ends it; true when nothing failed. Throws hk::Error.
  bool run();

 private:
  void read_ahead();
  void take(InputLine& line);
  void answer(std::uint64_t place, std::string line, bool failed);
  void write(std::string line);
  std::uint64_t outstanding() const { return taken_ - answered_; }
  BatchCount count() const;

  const RunningModel& running_;
  RequestReader& reader_;
  RequestBuilder& builder_;
  AnswerFile& out_;
  BatchJobOptions options_;
  engine::Scheduler scheduler_;
  BatchProgress progress_;

  bool input_ended_ = false;
  bool finishing_ = false;
  std::uint64_t skipped_ = 0;   // answered by a run before
  std::uint64_t taken_ = 0;     // requests of this run
  std::uint64_t answered_ = 0;  // of those
  std::uint64_t failed_ = 0;
  std::size_t bytes_ = 0;      // lines of requests without an answer, and answers that are held back
  std::uint64_t dropped_ = 0;  // ended by a signal, without an answer
  std::optional<std::uint64_t> lines_;
  std::uint64_t written_ = 0;                  // with `ordered`: all places before this one
  std::map<std::uint64_t, std::string> held_;  // with `ordered`: answers whose turn has not come
};

}  // namespace hk::cli
