// hk-run hardware --self-check: the level in use is checked, as text and as JSON.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/run_program.h"

namespace hk::cli {
namespace {

using nlohmann::json;
using test::hk_run;

TEST(HardwareCommand, ChecksTheLevelInUse) {
  const auto machine = json::parse(hk_run({"hardware", "--json"}).out);
  EXPECT_FALSE(machine.contains("self_check"));
  const auto level = machine["kernels"]["in_use"].get<std::string>();
  const auto text = hk_run({"hardware", "--self-check"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_NE(text.out.find("Self check  " + level + " passes"), std::string::npos) << text.out;
  const auto checked = json::parse(hk_run({"hardware", "--self-check", "--json"}).out);
  EXPECT_EQ(checked["self_check"]["passes"], level);
  EXPECT_EQ(checked["self_check"]["faults"], json::array());
}

TEST(HardwareCommand, ChecksTheLevelThatIsForced) {
  ASSERT_EQ(setenv("HK_KERNELS", "generic", 1), 0);
  const auto forced = hk_run({"hardware", "--self-check"});
  unsetenv("HK_KERNELS");
  EXPECT_EQ(forced.exit_code, 0) << forced.err;
  EXPECT_NE(forced.out.find("Self check  generic passes"), std::string::npos) << forced.out;
}

}  // namespace
}  // namespace hk::cli
