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

/// Whether a write that returned `written` shall be tried again. Waits until a non-blocking descriptor takes more.
inline bool write_again(int descriptor, ssize_t written) {
  if (written > 0) return true;
  if (written == 0) {
    errno = ENOSPC;  // what a device that takes nothing means
    return false;
  }
  if (errno == EINTR) return true;
  if (errno != EAGAIN) return false;
  struct pollfd ask {
    descriptor, POLLOUT, 0
  };
  return ::poll(&ask, 1, -1) >= 0 || errno == EINTR;
}

/// Returns how many bytes were written: all, or fewer with the reason in errno.
inline std::size_t write_all(int descriptor, std::string_view text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = ::write(descriptor, text.data() + done, text.size() - done);
    if (!write_again(descriptor, written)) break;
    if (written > 0) done += static_cast<std::size_t>(written);
  }
  return done;
}

/// The same at a place of a file: `bytes` from `offset` on.
inline std::size_t write_all_at(int file, std::uint64_t offset, std::span<const std::byte> bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t written =
        ::pwrite(file, bytes.data() + done, bytes.size() - done, static_cast<::off_t>(offset + done));
    if (!write_again(file, written)) break;
    if (written > 0) done += static_cast<std::size_t>(written);
  }
  return done;
}

}  // namespace hk
