// How much processor time another process has taken.
#pragma once

#include <sys/types.h>

#include <ctime>

namespace hk::test {

/// Processor time of a process so far, in seconds; 0 when it cannot be asked for. Not /proc/PID/stat: its ticks of 10
/// ms are longer than a short answer takes.
inline double processor_seconds(pid_t process) {
  clockid_t clock{};
  timespec time{};
  if (::clock_getcpuclockid(process, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace hk::test
