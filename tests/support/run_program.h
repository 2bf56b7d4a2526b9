// Runs a program with its output caught: what a test of the command line needs.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/fixtures.h"

namespace hk::test {

struct Outcome {
  int exit_code = 0;  ///< 128 + signal when killed by one, as a shell would say
  std::string out;
  std::string err;
};

struct RunOptions {
  std::string input;                     ///< standard input
  std::string out_path;                  ///< standard output goes here, and is not caught; "": caught
  int interrupt_after_ms = -1;           ///< send SIGINT then; -1: never
  std::function<void()> in_child;        ///< called in the child before the program begins: limits, masks
  std::function<void(pid_t)> meanwhile;  ///< called beside the running program
};

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Standard streams go through files, so that no amount of output blocks.
inline Outcome run_program(std::vector<std::string> arguments, const RunOptions& options = {}) {
  const TemporaryFolder folder;
  const auto in_path = (folder.path() / "in").string(), err_path = (folder.path() / "err").string();
  const auto out_path = options.out_path.empty() ? (folder.path() / "out").string() : options.out_path;
  std::ofstream(in_path, std::ios::binary) << options.input;
  std::vector<char*> raw;
  for (auto& argument : arguments) raw.push_back(argument.data());
  raw.push_back(nullptr);
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("cannot fork");
  if (child == 0) {
    const int in = ::open(in_path.c_str(), O_RDONLY);
    const int out = ::open(out_path.c_str(), O_WRONLY | O_CREAT, 0600);
    const int err = ::open(err_path.c_str(), O_WRONLY | O_CREAT, 0600);
    if (in < 0 || out < 0 || err < 0 || ::dup2(in, 0) < 0 || ::dup2(out, 1) < 0 || ::dup2(err, 2) < 0) ::_exit(126);
    if (options.in_child) options.in_child();
    ::execv(raw[0], raw.data());
    ::_exit(127);
  }
  if (options.interrupt_after_ms >= 0) {
    ::usleep(static_cast<useconds_t>(options.interrupt_after_ms) * 1000);
    ::kill(child, SIGINT);
  }
  if (options.meanwhile) options.meanwhile(child);
  int status = 0;
  ::waitpid(child, &status, 0);
  const auto text = [](const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  };
  Outcome outcome;
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (options.out_path.empty()) outcome.out = text(out_path);
  outcome.err = text(err_path);
  return outcome;
}

/// hk-run with these arguments.
inline Outcome hk_run(std::vector<std::string> arguments, const RunOptions& options = {}) {
  arguments.insert(arguments.begin(), program());
  return run_program(std::move(arguments), options);
}

}  // namespace hk::test
