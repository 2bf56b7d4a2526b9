// Handlers that set flags.
#include "cli/batch/stop_signals.h"

#include <csignal>
#include <iterator>

namespace hk::cli {
namespace {

volatile std::sig_atomic_t g_interrupts = 0;
volatile std::sig_atomic_t g_terminate = 0;
volatile std::sig_atomic_t g_report = 0;

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGUSR1, SIGXFSZ};
struct sigaction g_old[std::size(kSignals)];

void on_signal(int signal) {
  if (signal == SIGINT && g_interrupts < 2) g_interrupts = g_interrupts + 1;
  if (signal == SIGTERM) g_terminate = 1;
  if (signal == SIGUSR1) g_report = 1;
}

}  // namespace

StopSignals::StopSignals() {
  g_interrupts = 0;
  g_terminate = 0;
  g_report = 0;
  for (std::size_t i = 0; i < std::size(kSignals); ++i) {
    struct sigaction action {};
    action.sa_handler = kSignals[i] == SIGXFSZ ? SIG_IGN : on_signal;
    ::sigemptyset(&action.sa_mask);  // no SA_RESTART: a read that waits for requests returns
    ::sigaction(kSignals[i], &action, &g_old[i]);
  }
}

StopSignals::~StopSignals() {
  for (std::size_t i = 0; i < std::size(kSignals); ++i) ::sigaction(kSignals[i], &g_old[i], nullptr);
}

void StopSignals::ignore_report() { ::signal(SIGUSR1, SIG_IGN); }

bool StopSignals::finish() { return g_interrupts > 0; }
bool StopSignals::stop() { return g_terminate != 0 || g_interrupts > 1; }
bool StopSignals::take_report() {
  const bool report = g_report != 0;
  g_report = 0;
  return report;
}

}  // namespace hk::cli
