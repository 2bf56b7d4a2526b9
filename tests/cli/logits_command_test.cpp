// hk-run logits from outside: rows of numbers, and how far they are from those of another run.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/run_program.h"

namespace hk::test {
namespace {

class Logits : public testing::Test {
 protected:
  void SetUp() override {
    HK_FIXTURE(model, "models/demo/demo-f16.gguf");
    model_ = model;
  }
  Outcome logits(std::vector<std::string> more) const {
    std::vector<std::string> arguments = {"logits", model_, "--tokens", "2046,269,198,311,270,276,314,284,404,1956"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return hk_run(arguments);
  }
  TemporaryFolder folder_;
  std::string model_;
};

TEST_F(Logits, TellHowFarTwoRunsAreApart) {
  const std::string file = (folder_.path() / "f32.bin").string();
  ASSERT_EQ(logits({"-o", file, "--kv", "f32"}).exit_code, 0);
  EXPECT_EQ(std::filesystem::file_size(file), 10u * 2048 * 4);
  const auto same = logits({"--against", file, "--kv", "f32", "--batch", "3"});
  EXPECT_EQ(same.exit_code, 0) << same.err;
  EXPECT_EQ(same.out.find("10 positions: largest difference 0, rms 0 of "), 0u) << same.out;
  EXPECT_NE(same.out.find("same best token 100.00 %"), std::string::npos) << same.out;
  for (const char* kv : {"f16", "bf16", "q8_0"}) {
    const auto other = logits({"--against", file, "--kv", kv});
    EXPECT_EQ(other.exit_code, 0) << other.err;
    EXPECT_EQ(other.out.find("10 positions: largest difference 0."), 0u) << other.out;  // below 1, and not nothing
    EXPECT_EQ(other.out.find("KL divergence 0 "), std::string::npos) << other.out;
  }
}

TEST_F(Logits, RefuseWhatMakesNoSense) {
  EXPECT_EQ(logits({}).exit_code, 2);
  const auto type = logits({"-o", (folder_.path() / "x").string(), "--kv", "q3"});
  EXPECT_EQ(type.exit_code, 2);
  EXPECT_NE(type.err.find("'q3' is no cache type; there are f16, bf16, q8_0 and f32"), std::string::npos) << type.err;
  const auto file = folder_.write("short.bin", std::vector<std::byte>(100));
  const auto run = logits({"--against", file.string()});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_NE(run.err.find("holds 100 bytes, but 10 positions of 2048 values take 81920"), std::string::npos) << run.err;
  EXPECT_EQ(logits({"--against", (folder_.path() / "none").string()}).exit_code, 1);
}

}  // namespace
}  // namespace hk::test
