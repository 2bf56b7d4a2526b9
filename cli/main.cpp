// hk-run: parses the command line, runs one subcommand, turns every failure into one sentence and an exit code.
//
// Exit codes: 0 done, 1 bad input, 2 bad usage, 3 out of memory or disk, 130 interrupted. stdout carries answers only.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/streams.h"
#include "cli/whole_numbers.h"
#include "engine/container/mapping_guard.h"

namespace {

using hk::ErrorKind;

int fail(const std::string& sentence, ErrorKind kind) {
  std::fflush(stdout);  // what was answered before comes first where both go to one place
  hk::cli::write_note(fmt::format("hk-run: {}", sentence));
  return static_cast<int>(kind);
}

/// Output that never reached its place is a failure, even when the work was done.
int flush_output() {
  std::cout.flush();
  errno = 0;
  const bool failed_now = std::fflush(stdout) != 0;
  const int reason = errno;
  if (!failed_now && std::ferror(stdout) == 0 && std::cout.good()) return 0;
  return fail(reason == 0 ? std::string("cannot write the output")
                          : fmt::format("cannot write the output: {}", std::strerror(reason)),
              ErrorKind::kResource);
}

void add_commands(CLI::App& app) {
  hk::cli::add_chat_command(app);
  hk::cli::add_generate_command(app);
  hk::cli::add_batch_command(app);
  hk::cli::add_bench_command(app);
  hk::cli::add_convert_command(app);
  hk::cli::add_inspect_command(app);
  hk::cli::add_verify_command(app);
  hk::cli::add_metadata_command(app);
  hk::cli::add_dequantize_command(app);
  hk::cli::add_appendix_command(app);
  hk::cli::add_tokenize_commands(app);
  hk::cli::add_template_command(app);
  hk::cli::add_logits_command(app);
  hk::cli::add_hardware_command(app);
  hk::cli::check_whole_numbers(app);
}

/// Two options are known everywhere by two letters behind one dash, which to the parser is one letter and its value.
std::vector<const char*> spelled_out(int argc, char** argv) {
  std::vector<const char*> arguments(argv, argv + argc);
  for (const char*& argument : arguments) {
    if (std::strcmp(argument, "-tb") == 0) argument = "--threads-batch";
    if (std::strcmp(argument, "-pg") == 0) argument = "--pg";
  }
  return arguments;
}

int run(int argc, char** argv) {
  CLI::App app("Runs .hk language models on this computer's CPU, and the tools around a model file.", "hk-run");
  app.set_version_flag("-V,--version", "hk-run " HK_VERSION, "Print the version and stop");
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  add_commands(app);
  // The parser would only say that a subcommand is required.
  const auto named = [&](const CLI::App* command) { return command->check_name(argv[1]); };
  if (argc > 1 && argv[1][0] != '-' && app.get_subcommands(named).empty())
    return fail(fmt::format("'{}' is no subcommand (hk-run --help lists them)", argv[1]), ErrorKind::kUsage);
  try {
    app.parse(argc, spelled_out(argc, argv).data());
  } catch (const CLI::Success& asked) {  // --help, --version
    app.exit(asked);
    return flush_output();
  } catch (const CLI::RuntimeError& code) {  // a command that only has an exit code left to say
    const int flushed = flush_output();
    return code.get_exit_code() != 0 ? code.get_exit_code() : flushed;
  } catch (const CLI::ParseError& wrong) {
    return fail(fmt::format("{} (hk-run {}--help lists the options)", wrong.what(),
                            app.get_subcommands().empty() ? "" : app.get_subcommands().front()->get_name() + " "),
                ErrorKind::kUsage);
  }
  return flush_output();
}

}  // namespace

int main(int argc, char** argv) {
  hk::cli::occupy_standard_streams();
  // A reader of our output that goes away ends us quietly, whatever the parent process had set.
  std::signal(SIGPIPE, SIG_DFL);
  // A file that grows beyond what the process may write (ulimit -f) is an error of the write that does not fit.
  std::signal(SIGXFSZ, SIG_IGN);
  hk::engine::install_mapping_guard("hk-run");
  try {
    return run(argc, argv);
  } catch (const hk::Error& error) {
    return fail(error.what(), error.kind());
  } catch (const std::bad_alloc&) {
    return fail("out of memory", ErrorKind::kResource);
  } catch (const std::system_error& error) {
    return fail(error.what(), ErrorKind::kResource);
  } catch (const std::exception& error) {
    return fail(error.what(), ErrorKind::kInput);
  }
}
