// Writing everything that was asked for, whatever interrupts it.
//
// A signal handler without SA_RESTART (Ctrl-C during an answer) lets a write to a slow terminal or pipe return early,
// and a descriptor that some other program made non-blocking refuses for a while: neither is a failure of the output.
//
// Layer: base.
#pragma once

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace hk {

/// Calls write(done), which writes what is left from `done` on, until all `size` bytes are written or it fails. Waits
/// until a non-blocking descriptor takes more. Returns how many bytes were written: all, or fewer with the reason in
/// errno. Safe in a signal handler when `write` is.
template <typename Write>
std::size_t write_pieces(int descriptor, std::size_t size, const Write& write) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t written = write(done);
    if (written > 0) {
      done += static_cast<std::size_t>(written);
      continue;
    }
    if (written == 0) errno = ENOSPC;  // what a device that takes nothing means
    if (errno == EAGAIN) {
      struct pollfd ask {
        descriptor, POLLOUT, 0
      };
      if (::poll(&ask, 1, -1) >= 0) continue;
    }
    if (errno != EINTR) break;
  }
  return done;
}

inline std::size_t write_all(int descriptor, std::string_view text) {
  return write_pieces(descriptor, text.size(),
                      [&](std::size_t done) { return ::write(descriptor, text.data() + done, text.size() - done); });
}

/// The same at a place of a file: `bytes` from `offset` on.
inline std::size_t write_all_at(int file, std::uint64_t offset, std::span<const std::byte> bytes) {
  return write_pieces(file, bytes.size(), [&](std::size_t done) {
    return ::pwrite(file, bytes.data() + done, bytes.size() - done, static_cast<::off_t>(offset + done));
  });
}

}  // namespace hk
