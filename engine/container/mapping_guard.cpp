// The table of mappings and the signal handler that reads it (see mapping_guard.h).
//
// The handler may run between any two instructions of any thread: it takes no lock, allocates nothing and calls only
// what POSIX calls async-signal-safe.
#include "engine/container/mapping_guard.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/write_all.h"

namespace hk::engine {
namespace {

struct Slot {
  std::atomic<bool> taken{false};
  std::atomic<std::uintptr_t> begin{0};  // 0: not to be looked at
  std::atomic<std::uintptr_t> end{0};
  std::atomic<char*> path{nullptr};
};
constexpr std::size_t kSlots = 4096;
Slot slots[kSlots];
const char* program_name = "";
std::atomic_flag speaking = ATOMIC_FLAG_INIT;

void say(std::string_view text) { write_all(STDERR_FILENO, text); }

void on_bus_error(int signal, siginfo_t* info, void*) {
  // A signal that a program sent has no address.
  const auto address = info->si_code > 0 ? reinterpret_cast<std::uintptr_t>(info->si_addr) : 0;
  for (const Slot& slot : slots) {
    const std::uintptr_t begin = slot.begin.load(std::memory_order_acquire);
    if (begin == 0 || address < begin || address >= slot.end.load(std::memory_order_acquire)) continue;
    // Several workers come here at once: one speaks and ends the program, the others wait for that.
    if (speaking.test_and_set()) {
      while (true) ::pause();
    }
    const char* path = slot.path.load(std::memory_order_acquire);
    say(program_name);
    say(": ");
    say(path == nullptr ? "a model file" : path);
    say(": the file can no longer be read: it was shortened or replaced in place while it was in use, or its disk "
        "failed\n");
    ::_exit(1);
  }
  // Not ours: as if we had never been here.
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

}  // namespace

void install_mapping_guard(const char* program) {
  program_name = program;
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  // Not SA_RESETHAND: a second worker's signal would then end the program before the first has spoken.
  action.sa_flags = SA_SIGINFO;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

void guard_mapping(std::span<const std::byte> bytes, const char* path) {
  if (bytes.empty()) return;
  for (Slot& slot : slots) {
    if (slot.taken.exchange(true)) continue;
    const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
    slot.path.store(::strdup(path), std::memory_order_release);
    slot.end.store(begin + bytes.size(), std::memory_order_release);
    slot.begin.store(begin, std::memory_order_release);
    return;
  }
}

void unguard_mapping(const std::byte* begin) {
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  if (address == 0) return;
  for (Slot& slot : slots) {
    if (slot.begin.load(std::memory_order_acquire) != address) continue;
    slot.begin.store(0, std::memory_order_release);
    std::free(slot.path.exchange(nullptr));
    slot.taken.store(false);
    return;
  }
}

}  // namespace hk::engine
