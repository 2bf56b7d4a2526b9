// Ctrl-C as a question the work asks now and then, instead of a sudden death that leaves half a file behind.
//
// Layer: cli.
#pragma once

namespace hk::cli {

/// While one exists, SIGINT and SIGTERM set a flag; a second one kills as usual. Inner ones share the outermost's.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  static bool interrupted();
  static void reset();
  /// Throws hk::Error (exit code 130) when the user asked to stop.
  static void check();
};

}  // namespace hk::cli
