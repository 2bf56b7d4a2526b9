// The progress line (see batch_progress.h).
#include "cli/batch/batch_progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/streams.h"

namespace hk::cli {
namespace {

constexpr std::chrono::milliseconds kRedraw{200};
constexpr std::chrono::seconds kLogLine{30};

std::string duration_text(double seconds) {
  const auto whole = static_cast<long long>(std::llround(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{}:{:02} min", whole / 60, whole % 60);
  return fmt::format("{}:{:02} h", whole / 3600, whole / 60 % 60);
}

}  // namespace

BatchProgress::BatchProgress(bool quiet) : quiet_(quiet), terminal_(stderr_is_terminal()) {
  if (!terminal_) next_ += kLogLine;
}

double BatchProgress::seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

std::string BatchProgress::line(const BatchCount& count, const engine::Scheduler& scheduler) const {
  const auto& s = scheduler.statistics();
  const double elapsed = std::max(seconds(), 1e-3);
  std::string out = std::to_string(count.done);
  if (count.total) out += fmt::format("/{}{:.0f}", count.total_exact ? "" : "~", *count.total);
  out += " requests";
  if (count.failed > 0) out += fmt::format(" ({} failed)", count.failed);
  out += fmt::format(", prefill {:.1f} tok/s, decode {:.1f} tok/s", static_cast<double>(s.prefilled_tokens) / elapsed,
                     static_cast<double>(s.sampled_tokens) / elapsed);
  const auto prompt_tokens = s.prefilled_tokens + s.shared_tokens;
  if (prompt_tokens > 0)
    out +=
        fmt::format(", {:.0f} % of prompt tokens shared ({} prefixes)",
                    100 * static_cast<double>(s.shared_tokens) / static_cast<double>(prompt_tokens), s.shared_prefixes);
  const auto now = count.done - count.before;
  if (count.total && now > 0 && *count.total > static_cast<double>(count.done))
    out += fmt::format(", {} left", duration_text((*count.total - static_cast<double>(count.done)) * elapsed /
                                                  static_cast<double>(now)));
  return out;
}

void BatchProgress::update(const BatchCount& count, const engine::Scheduler& scheduler) {
  const auto now = Clock::now();
  if (quiet_ || now < next_) return;
  if (terminal_) {
    next_ = now + kRedraw;
    drawn_ = true;
    write_aside(fmt::format("\r\x1b[K{}, {} running", line(count, scheduler), scheduler.running()));
  } else {
    next_ = now + kLogLine;
    write_note(line(count, scheduler));
  }
}

void BatchProgress::report(const BatchCount& count, const engine::Scheduler& scheduler) {
  clear();
  const auto& s = scheduler.statistics();
  write_note(fmt::format("{}; {} in {} steps: {} prompt tokens read, {} shared, {} generated; {} running, {} waiting{}",
                         line(count, scheduler), duration_text(seconds()), s.steps, s.prefilled_tokens, s.shared_tokens,
                         s.sampled_tokens, scheduler.running(), scheduler.waiting(),
                         s.preemptions == 0 ? ""
                                            : fmt::format("; {} times out of memory, {} tokens read again",
                                                          s.preemptions, s.recomputed_tokens)));
}

void BatchProgress::clear() {
  if (!drawn_) return;
  write_aside("\r\x1b[K");
  drawn_ = false;
}

}  // namespace hk::cli
