// A progress line on stderr.
#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "cli/streams.h"
#include "cli/text.h"

namespace hk::cli {
namespace {

constexpr auto kInterval = std::chrono::milliseconds(100);
constexpr std::size_t kBarWidth = 30;

}  // namespace

Progress::Progress(std::string label, std::uint64_t total)
    : label_(std::move(label)), total_(total), terminal_(::isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() { clear(); }

double Progress::seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

void Progress::update(std::uint64_t done) {
  if (!terminal_) return;
  const auto now = Clock::now();
  if (now - last_ < kInterval && done < total_) return;
  last_ = now;
  drawn_ = true;
  const double rate = static_cast<double>(done) / std::max(seconds(), 1e-3);
  std::string line;
  if (total_ != 0) {
    const double part = std::min(1.0, static_cast<double>(done) / static_cast<double>(total_));
    const auto filled = static_cast<std::size_t>(part * static_cast<double>(kBarWidth));
    line = fmt::format("\r\x1b[K{} [{}{}] {:3.0f}%  {} of {}, {}", label_, std::string(filled, '#'),
                       std::string(kBarWidth - filled, '.'), part * 100, bytes_text(done), bytes_text(total_),
                       rate_text(rate));
  } else {
    line = fmt::format("\r\x1b[K{} {}, {}", label_, bytes_text(done), rate_text(rate));
  }
  write_aside(line);
}

void Progress::clear() {
  if (!drawn_) return;
  write_aside("\r\x1b[K");
  drawn_ = false;
}

}  // namespace hk::cli
