// The frame of hk-run: exit codes, one sentence on stderr, nothing but answers on stdout.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "tests/support/run_program.h"

namespace hk::cli {
namespace {

using test::hk_run;
using test::Outcome;

void expect_sentence(const Outcome& outcome, int exit_code, const std::string& fragment) {
  EXPECT_EQ(outcome.exit_code, exit_code);
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(outcome.err.starts_with("hk-run: ")) << outcome.err;
  EXPECT_NE(outcome.err.find(fragment), std::string::npos) << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
}

TEST(Frame, HelpAndVersionGoToStandardOutput) {
  const auto help = hk_run({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_EQ(help.err, "");
  for (const auto* command : {"convert", "inspect", "verify", "dequantize", "metadata", "appendix", "tokenize",
                              "detokenize", "template", "logits", "generate", "chat", "hardware"})
    EXPECT_NE(help.out.find(std::string("\n  ") + command), std::string::npos) << command;
  const auto version = hk_run({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_TRUE(version.out.starts_with("hk-run ")) << version.out;
  const auto command_help = hk_run({"convert", "--help"});
  EXPECT_EQ(command_help.exit_code, 0);
  EXPECT_NE(command_help.out.find("--alignment"), std::string::npos);
}

TEST(Frame, WrongUsageIsExitCode2) {
  expect_sentence(hk_run({}), 2, "subcommand");
  expect_sentence(hk_run({"fly"}), 2, "fly");
  expect_sentence(hk_run({"inspect"}), 2, "file");
  expect_sentence(hk_run({"inspect", "--colour", "x.hk"}), 2, "--colour");
  expect_sentence(hk_run({"convert", "a.gguf", "b.hk", "--alignment", "many"}), 2, "many");
  expect_sentence(hk_run({"convert", "a.gguf", "b.hk", "--alignment", "65536"}), 2, "65535");
  expect_sentence(hk_run({"convert", "a.gguf", "b.hk", "--type", "q9"}), 2, "'q9'");
  expect_sentence(hk_run({"convert", "a.gguf", "b.hk", "--shard-size", "big"}), 2, "'big'");
  expect_sentence(hk_run({"convert", "a.gguf", "b.hk", "--shard-size", "0"}), 2, "--shard-size");
  expect_sentence(hk_run({"convert", "a.gguf", "b.gguf"}), 2, "b.gguf");
}

TEST(Frame, BadInputIsExitCode1) {
  const test::TemporaryFolder folder;
  const auto absent = (folder.path() / "absent.hk").string();
  expect_sentence(hk_run({"inspect", absent}), 1, absent);
  expect_sentence(hk_run({"convert", absent, (folder.path() / "out.hk").string()}), 1, absent);
  expect_sentence(hk_run({"inspect", folder.path().string()}), 1, "folder");
  const std::string words = "this is no model";
  const auto text = folder.write("text.hk", std::as_bytes(std::span(words))).string();
  expect_sentence(hk_run({"inspect", text}), 1, "text.hk");
}

TEST(Frame, OutputThatCannotBeWrittenIsExitCode3) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  test::RunOptions full;
  full.out_path = "/dev/full";
  const auto outcome = hk_run({"--help"}, full);
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_TRUE(outcome.err.starts_with("hk-run: cannot write the output")) << outcome.err;
}

}  // namespace
}  // namespace hk::cli
