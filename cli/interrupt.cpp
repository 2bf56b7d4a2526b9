// Ctrl-C as a flag.
#include "cli/interrupt.h"

#include <csignal>

#include "base/error.h"

namespace hk::cli {
namespace {

volatile std::sig_atomic_t g_interrupted = 0;
int g_guards = 0;
struct sigaction g_old_interrupt {};
struct sigaction g_old_terminate {};

void on_signal(int) { g_interrupted = 1; }

}  // namespace

InterruptGuard::InterruptGuard() {
  if (g_guards++ != 0) return;
  g_interrupted = 0;
  struct sigaction action {};
  action.sa_handler = on_signal;
  ::sigemptyset(&action.sa_mask);
  // SA_RESETHAND: a second Ctrl-C kills. No SA_RESTART: a read that waits for the user returns.
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGINT, &action, &g_old_interrupt);
  ::sigaction(SIGTERM, &action, &g_old_terminate);
}

InterruptGuard::~InterruptGuard() {
  if (--g_guards != 0) return;
  ::sigaction(SIGINT, &g_old_interrupt, nullptr);
  ::sigaction(SIGTERM, &g_old_terminate, nullptr);
}

bool InterruptGuard::interrupted() { return g_interrupted != 0; }

void InterruptGuard::reset() { g_interrupted = 0; }

void InterruptGuard::check() {
  if (interrupted()) throw Error("interrupted", ErrorKind::kInterrupted);
}

}  // namespace hk::cli
