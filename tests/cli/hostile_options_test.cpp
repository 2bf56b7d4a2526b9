// Numbers, files and outputs that a slip or malice gives: one sentence, and nothing is lost or endless.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/support/run_program.h"

namespace hk::test {
namespace {

const std::string kModel = std::string(source_root()) + "/demo/hinoki.hk";

std::string content(const std::filesystem::path& path) {
  const auto bytes = read_file(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(HostileOptions, NumbersAreWhatTheyLookLike) {
  const auto refused = [](std::vector<std::string> option, const std::string& why) {
    std::vector<std::string> arguments = {"generate", kModel, "-p", "a", "-n", "1"};
    arguments.insert(arguments.end(), option.begin(), option.end());
    const auto run = hk_run(arguments);
    EXPECT_EQ(run.exit_code, 2) << option[1];
    EXPECT_TRUE(has(run.err, why)) << run.err;
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  };
  refused({"-c", "-1"}, "'-1' is no whole number from 0 on");
  refused({"-c", "99999999999999999999"}, "99999999999999999999 is too large a number");
  refused({"-c", "2147483648"}, "at most 2147483647");
  refused({"-t", "99999999999999999999"}, "too large");
  refused({"-t", "0x2"}, "'0x2' is no whole number");
  refused({"--top-k", "1e3"}, "'1e3' is no whole number");
  refused({"--top-k", "4 "}, "is no whole number");
  refused({"--top-k", ""}, "is no whole number");
  const auto generated = [](const std::string& count) {
    const auto run = hk_run({"generate", kModel, "-p", "a", "--ignore-eos", "-n", count});
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return has(run.err, "generated 10 tokens");
  };
  EXPECT_TRUE(generated("010"));  // not octal
  EXPECT_TRUE(generated("+10"));
}

TEST(HostileOptions, EndlessFilesEnd) {
  const auto of_template = hk_run({"template", "--chat-template-file", "/dev/zero", "--messages", "/dev/null"});
  EXPECT_EQ(of_template.exit_code, 1);
  EXPECT_TRUE(has(of_template.err, "/dev/zero: is longer than 16.0 MiB")) << of_template.err;
}

TEST(HostileOptions, AModelIsNeverItsOwnOutput) {
  const TemporaryFolder folder;
  const auto model = folder.path() / "model.hk", link = folder.path() / "link.f32";
  std::filesystem::copy_file(kModel, model);
  std::filesystem::create_symlink(model, link);
  const auto refused = [&](const std::vector<std::string>& arguments) {
    const auto run = hk_run(arguments);
    EXPECT_EQ(run.exit_code, 2) << arguments[0];
    EXPECT_TRUE(has(run.err, "is read from and cannot be the file that is written")) << run.err;
    EXPECT_EQ(content(model), content(kModel)) << arguments[0];
  };
  for (const auto& out : {model, link}) {
    refused({"dequantize", model, "token_embd.weight", "-o", out});
    refused({"logits", model, "--tokens", "1,2", "-o", out});
    refused({"generate", model, "-p", "a", "-n", "1", "--profile-json", out});
    refused({"bench", model, "-p", "1", "-n", "1", "-d", "0", "-r", "1", "--profile-json", out});
  }
}

}  // namespace
}  // namespace hk::test
