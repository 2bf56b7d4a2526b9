// Writing through signals, full pipes and devices that are full.
#include "base/write_all.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <thread>

#include "tests/support/fixtures.h"

namespace hk::test {
namespace {

std::string pattern(std::size_t size) {
  std::string text(size, 0);
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>('a' + i % 23);
  return text;
}

/// Sends `text` through a pipe whose reader begins when the writer has been interrupted often.
std::string through_pipe(const std::string& text, int writer_flags) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return "no pipe";
  ::fcntl(ends[1], F_SETFL, writer_flags);
  struct sigaction action {
  }, before{};
  action.sa_handler = [](int) {};
  ::sigaction(SIGUSR1, &action, &before);  // no SA_RESTART: the write returns
  const pthread_t writer = ::pthread_self();
  std::string got;
  std::thread reader([&] {
    for (int i = 0; i < 20; ++i) {
      ::usleep(2000);
      ::pthread_kill(writer, SIGUSR1);
    }
    char buffer[1000];
    for (ssize_t count; (count = ::read(ends[0], buffer, sizeof buffer)) > 0;) {
      got.append(buffer, static_cast<std::size_t>(count));
    }
  });
  EXPECT_EQ(write_all(ends[1], text), text.size());
  ::close(ends[1]);
  reader.join();
  ::close(ends[0]);
  ::sigaction(SIGUSR1, &before, nullptr);
  return got;
}

TEST(WriteAll, SignalsDoNotCutIt) {
  const auto text = pattern(300'001);  // more than a pipe holds
  EXPECT_EQ(through_pipe(text, 0), text);
}

TEST(WriteAll, NonBlockingDescriptorsAreWaitedFor) {
  const auto text = pattern(300'001);
  EXPECT_EQ(through_pipe(text, O_NONBLOCK), text);
}

TEST(WriteAll, NothingIsWrittenAsNothing) { EXPECT_EQ(write_all(-1, ""), 0u); }

TEST(WriteAll, FailuresKeepTheirReason) {
  EXPECT_EQ(write_all(-1, "text"), 0u);
  EXPECT_EQ(errno, EBADF);
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  EXPECT_EQ(write_all(full, "text"), 0u);
  EXPECT_EQ(errno, ENOSPC);
  ::close(full);
}

TEST(WriteAll, AtAPlace) {
  const TemporaryFolder folder;
  const int file = ::open((folder.path() / "file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(file, 0);
  const std::string text = pattern(1000);
  EXPECT_EQ(write_all_at(file, 17, std::as_bytes(std::span(text))), text.size());
  std::string back(1100, 'x');
  EXPECT_EQ(::pread(file, back.data(), back.size(), 0), 1017);
  EXPECT_EQ(back.substr(0, 17), std::string(17, '\0'));
  EXPECT_EQ(back.substr(17, 1000), text);
  EXPECT_EQ(write_all_at(file, 5, {}), 0u);
  ::close(file);
}

}  // namespace
}  // namespace hk::test
