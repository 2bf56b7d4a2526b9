// A program in a terminal of its own (tmux): keys in, screen out.
//
// Nothing here waits for a fixed time: `wait_for` looks again until a text is there or a generous limit is over.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/run_program.h"

namespace hk::test {

inline std::string shell_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

class TmuxTerminal {
 public:
  static bool available() { return run_program({"/usr/bin/tmux", "-V"}).exit_code == 0; }

  /// Runs `arguments` with `environment` ("NAME=VALUE") added. When the program ends, "[exit N]" is on the screen.
  explicit TmuxTerminal(const std::vector<std::string>& arguments, const std::vector<std::string>& environment = {},
                        int columns = 80, int rows = 24) {
    static int number = 0;
    socket_ = (folder_.path() / ("tmux" + std::to_string(++number))).string();
    std::string command = "env";
    for (const auto& variable : environment) command += " " + shell_quoted(variable);
    for (const auto& argument : arguments) command += " " + shell_quoted(argument);
    command += "; echo \"[exit $?]\"; exec sleep 600";
    const auto started = tmux(
        {"-f", "/dev/null", "new-session", "-d", "-x", std::to_string(columns), "-y", std::to_string(rows), command});
    EXPECT_EQ(started.exit_code, 0) << started.err;
    tmux({"set-option", "-g", "escape-time", "0"});
  }
  ~TmuxTerminal() {
    hold(false);
    tmux({"kill-server"});
  }
  TmuxTerminal(const TmuxTerminal&) = delete;
  TmuxTerminal& operator=(const TmuxTerminal&) = delete;

  void type(const std::string& text) { tmux({"send-keys", "-l", "--", text}); }
  /// A key by tmux's name: "Enter", "C-c", "M-Enter", "Up".
  void key(const std::string& name) { tmux({"send-keys", name}); }
  void enter(const std::string& text) {
    type(text);
    key("Enter");
  }
  /// As the terminal pastes: marked as such when the program asked for it.
  void paste(const std::string& text) {
    tmux({"set-buffer", "--", text});
    tmux({"paste-buffer", "-p"});
  }
  void resize(int columns, int rows) {
    tmux({"resize-window", "-x", std::to_string(columns), "-y", std::to_string(rows)});
  }
  /// What is on the screen and above it; lines that the terminal itself has broken are whole.
  std::string text(bool colours = false) {
    std::vector<std::string> arguments = {"capture-pane", "-p", "-J", "-S", "-"};
    if (colours) arguments.push_back("-e");
    return tmux(arguments).out;
  }
  /// What is on the screen alone. (A window that shrinks may push rows out, which nobody can paint again.)
  std::string screen() { return tmux({"capture-pane", "-p", "-J"}).out; }
  bool wait_until(const std::function<bool(const std::string&)>& condition) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (true) {
      const auto now = text();
      if (condition(now)) return true;
      if (std::chrono::steady_clock::now() > limit) {
        ADD_FAILURE() << "not within a minute; the screen is:\n" << now;
        return false;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  bool wait_for(const std::string& part) {
    SCOPED_TRACE("waiting for: " + part);
    return wait_until([&](const std::string& now) { return now.find(part) != std::string::npos; });
  }
  /// The prompt stands alone on the last line: the program waits for a message.
  bool wait_for_prompt() {
    SCOPED_TRACE("waiting for the prompt");
    return wait_until([](const std::string& now) {
      const auto end = now.find_last_not_of(" \n");
      return end != std::string::npos && now[end] == '>' && (end == 0 || now[end - 1] == '\n');
    });
  }
  /// Process id of the program.
  int program() {
    const auto shell = tmux({"display-message", "-p", "#{pane_pid}"}).out;
    const auto child = run_program({"/usr/bin/pgrep", "-P", shell.substr(0, shell.find('\n')), "hk-run"}).out;
    return child.empty() ? 0 : std::atoi(child.c_str());
  }
  /// Stops the terminal itself, which then takes no more output, or lets it go on.
  void hold(bool held) {
    if (held) server_ = std::atoi(tmux({"display-message", "-p", "#{pid}"}).out.c_str());
    if (server_ > 0) ::kill(server_, held ? SIGSTOP : SIGCONT);
  }

 private:
  Outcome tmux(std::vector<std::string> arguments) {
    std::vector<std::string> all = {"/usr/bin/tmux", "-S", socket_};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return run_program(std::move(all));
  }

  TemporaryFolder folder_;
  std::string socket_;
  int server_ = 0;
};

}  // namespace hk::test
