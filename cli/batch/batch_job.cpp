// The loop between reader, scheduler and answer file (see batch_job.h).
#include "cli/batch/batch_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "base/error.h"
#include "cli/batch/answer_writer.h"
#include "cli/batch/stop_signals.h"
#include "cli/streams.h"

namespace hk::cli {
namespace {

// Sequences that wait in memory: enough for equal beginnings to meet, and for a free slot never to wait.
constexpr std::size_t kAhead = 64;
// With `ordered`, answers may come this much too early before reading stops.
constexpr std::uint64_t kLongestHold = 4096;

}  // namespace

BatchJob::BatchJob(const RunningModel& running, RequestReader& reader, RequestBuilder& builder, AnswerFile& out,
                   BatchJobOptions options)
    : running_(running),
      reader_(reader),
      builder_(builder),
      out_(out),
      options_(std::move(options)),
      scheduler_(*running.model, *running.tokenizer, running.threads.get(), options_.scheduler),
      progress_(options_.quiet),
      lines_(count_lines(options_.input)) {}

BatchCount BatchJob::count() const {
  BatchCount count;
  count.before = skipped_;
  count.done = skipped_ + answered_ - dropped_;
  count.failed = failed_;
  const auto& stream = reader_.stream();
  if (input_ended_) {
    count.total = static_cast<double>(skipped_ + taken_);
    count.total_exact = true;
  } else if (lines_ && options_.shard.count == 1) {
    count.total = static_cast<double>(*lines_);
    count.total_exact = true;
  } else if (stream.size() && stream.offset() > 0) {
    // What was read says how long the rest is.
    count.total = static_cast<double>(skipped_ + taken_) * static_cast<double>(*stream.size()) /
                  static_cast<double>(stream.offset());
  }
  return count;
}

bool BatchJob::run() {
  const StopSignals signals;
  const auto stop = [] { return StopSignals::stop(); };
  while (!StopSignals::stop()) {
    if (StopSignals::finish() && !finishing_) {
      finishing_ = true;
      dropped_ += scheduler_.cancel_waiting();
      progress_.clear();
      write_note("hk-run: finishing the requests that run; a second interrupt stops at once");
    }
    read_ahead();
    const bool worked = scheduler_.step(stop);
    if (StopSignals::take_report()) progress_.report(count(), scheduler_);
    progress_.update(count(), scheduler_);
    if (!worked && (input_ended_ || finishing_)) break;
  }
  out_.sync();
  progress_.clear();
  if (!options_.quiet) progress_.report(count(), scheduler_);
  if (StopSignals::stop() || finishing_)
    throw Error(fmt::format("interrupted: {} requests are answered; --resume goes on", count().done),
                ErrorKind::kInterrupted);
  return failed_ + out_.found_failed() == 0;
}

void BatchJob::read_ahead() {
  const std::size_t ahead = std::max(kAhead, 4 * options_.scheduler.slots);
  while (!input_ended_ && scheduler_.waiting() < ahead && !StopSignals::finish() && !StopSignals::stop()) {
    if (options_.ordered && taken_ - written_ >= kLongestHold) return;
    if (bytes_ >= options_.bytes_ahead && outstanding() > 0) return;
    InputLine line;
    switch (reader_.next(line, outstanding() == 0)) {
      case RequestReader::Event::kNotYet:
        return;
      case RequestReader::Event::kEnd:
        input_ended_ = true;
        return;
      case RequestReader::Event::kLine:
        break;
    }
    if (out_.has(line.key())) {
      ++skipped_;
    } else {
      take(line);
    }
    if (StopSignals::take_report()) progress_.report(count(), scheduler_);
    progress_.update(count(), scheduler_);
  }
}

void BatchJob::take(InputLine& line) {
  const std::uint64_t place = taken_++;
  const auto refuse = [&](std::string_view type, const std::string& sentence) {
    answer(place, error_line(error_shape(line), type, sentence), true);
  };
  if (!line.problem.empty()) return refuse(line.problem_type, line.problem);
  try {
    BatchRequest request = builder_.build(line);
    scheduler_.submit(std::move(request.request), [this, place, bytes = line.bytes,
                                                   shape = std::move(request.shape)](engine::Response&& response) {
      bytes_ -= bytes;
      if (response.cancelled) {
        ++answered_;  // it is gone, but not written
        return;
      }
      if (!response.error.empty()) return answer(place, error_line(shape, "failed", response.error), true);
      const auto& info = running_.model->info();
      answer(place,
             answer_line(shape, response, *running_.tokenizer, info.name.empty() ? info.architecture : info.name),
             false);
    });
    bytes_ += line.bytes;
  } catch (const Error& error) {
    return refuse(error.kind() == ErrorKind::kResource ? "failed" : "invalid_request",
                  fmt::format("line {}: {}", line.number, error.what()));
  } catch (const std::bad_alloc&) {
    return refuse("failed", fmt::format("line {}: out of memory", line.number));
  } catch (const std::exception& error) {
    // Nobody foresaw this; thousands of other requests must not suffer for it.
    return refuse("invalid_request", fmt::format("line {}: {}", line.number, error.what()));
  }
}

void BatchJob::answer(std::uint64_t place, std::string line, bool failed) {
  ++answered_;
  if (failed) ++failed_;
  if (!options_.ordered) return write(std::move(line));
  bytes_ += line.size();
  held_.emplace(place, std::move(line));
  for (auto next = held_.begin(); next != held_.end() && next->first == written_; next = held_.erase(next)) {
    bytes_ -= next->second.size();
    write(std::move(next->second));
    ++written_;
  }
}

void BatchJob::write(std::string line) {
  out_.append(std::move(line), [] { return StopSignals::stop() || StopSignals::finish(); });
}

}  // namespace hk::cli
