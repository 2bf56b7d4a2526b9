// Signals of a long run: finish what has begun, stop at once, tell how far it is.
//
// Layer: cli/batch.
#pragma once

namespace hk::cli {

/// While one exists: the first SIGINT asks to finish the running requests; the second, or SIGTERM (a cluster that wants
/// the machine back), to stop at once; SIGUSR1 asks for statistics; SIGXFSZ is an error of the write it concerns.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Until there is something to report: the signal would end the program.
  static void ignore_report();
  static bool finish();
  static bool stop();
  static bool take_report();  ///< true once for each SIGUSR1
};

}  // namespace hk::cli
