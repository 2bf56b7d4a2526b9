// hk-run verify, dequantize, metadata and appendix, end to end on the container fixtures.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/fixtures.h"
#include "tests/support/run_program.h"

namespace hk::cli {
namespace {

using test::hk_run;
using test::Outcome;
using test::TemporaryFolder;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

class ContainerCommands : public testing::Test {
 protected:
  std::string copy(const std::filesystem::path& from) {
    const auto to = folder_.path() / from.filename();
    std::filesystem::copy_file(from, to);
    std::filesystem::permissions(to, std::filesystem::perms::owner_all);
    return to.string();
  }
  TemporaryFolder folder_;
};

TEST_F(ContainerCommands, VerifyFailsOnEveryBrokenFixtureAndOnNoOther) {
  HK_FIXTURE(folder, "fixtures/hk");
  std::ifstream list(folder / "broken" / "why.json");
  const auto reasons = nlohmann::json::parse(list);
  for (const auto& [name, why] : reasons.items()) {
    const auto outcome = hk_run({"verify", (folder / "broken" / (name + ".hk")).string()});
    EXPECT_EQ(outcome.exit_code, 1) << name << ": " << why;
    EXPECT_TRUE(contains(outcome.out, "wrong: ") || contains(outcome.err, "hk-run: ")) << name << ": " << why;
  }
  for (const auto* name : {"all-types.hk", "all-types-unknown-flags.hk", "sections-moved.hk", "appendix-ok.hk",
                           "appendix-old-hash.hk", "sharded-00002-of-00002.hk", "sharded.hk.index.json"}) {
    const auto outcome = hk_run({"verify", (folder / name).string()});
    EXPECT_EQ(outcome.exit_code, 0) << name << outcome.out << outcome.err;
    EXPECT_TRUE(contains(outcome.out, "nothing wrong")) << outcome.out;
  }
  EXPECT_EQ(hk_run({"verify", "--quick", (folder / "broken" / "bsr-rowptr.hk").string()}).exit_code, 0);
}

TEST_F(ContainerCommands, DequantizeWritesTheValues) {
  HK_FIXTURE(folder, "fixtures/hk");
  const auto model = (folder / "all-types.hk").string();
  const auto out = (folder_.path() / "out.f32").string();
  for (const auto* name : {"tile.16x8", "sparse.bsr", "virtual.shared", "virtual.null"}) {
    ASSERT_EQ(hk_run({"dequantize", model, name, "-o", out}).exit_code, 0) << name;
    EXPECT_EQ(test::read_file(out), test::read_file(folder / "expected" / (std::string(name) + ".f32"))) << name;
  }
  ASSERT_EQ(hk_run({"dequantize", model, "dual.dq8.b64", "--residual", "-o", out}).exit_code, 0);
  EXPECT_EQ(test::read_file(out), test::read_file(folder / "expected" / "dual.dq8.b64.with_residual.f32"));
  const auto absent = hk_run({"dequantize", model, "no.such", "-o", out});
  EXPECT_EQ(absent.exit_code, 1);
  EXPECT_TRUE(contains(absent.err, "no.such")) << absent.err;
  const auto unknown = hk_run({"dequantize", (folder / "broken" / "storage-unknown.hk").string(), "t", "-o", out});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_TRUE(contains(unknown.err, "0x7f")) << unknown.err;
  EXPECT_EQ(hk_run({"dequantize", model}).exit_code, 2);
}

TEST_F(ContainerCommands, MetadataRoundTrip) {
  HK_FIXTURE(fixture, "fixtures/hk/appendix-ok.hk");
  const auto model = copy(fixture);
  const auto set = [&](std::vector<std::string> rest) {
    rest.insert(rest.begin(), {"metadata", "set", model});
    return hk_run(rest);
  };
  const auto get = [&](const std::string& key) { return hk_run({"metadata", "get", model, key}).out; };
  EXPECT_TRUE(contains(hk_run({"metadata", "list", model}).out, "general.architecture\tstring\t\"none\"\n"));
  EXPECT_EQ(get("arr.strings.blob"), "[\"héllo\",\"\",\"a\\nb\"]\n");
  EXPECT_EQ(set({"a.int", "-7"}).exit_code, 0);  // keeps its type
  EXPECT_EQ(get("a.int"), "-7\n");
  EXPECT_EQ(set({"a.int", "seven"}).exit_code, 2);
  EXPECT_EQ(set({"a.int", "9223372036854775808"}).exit_code, 2);
  EXPECT_EQ(set({"new.float", "0.5", "--type", "float"}).exit_code, 0);
  EXPECT_EQ(set({"new.bool", "true", "--type", "bool"}).exit_code, 0);
  EXPECT_EQ(set({"new.bytes", "00fF", "--type", "bytes"}).exit_code, 0);
  EXPECT_EQ(get("new.bytes"), "00ff\n");
  EXPECT_EQ(set({"new.bytes", "00"}).exit_code, 2);  // bytes by accident are refused
  EXPECT_EQ(set({"new.json", "{", "--type", "json"}).exit_code, 1);
  EXPECT_EQ(set({"new.json", "[1,2]", "--type", "json"}).exit_code, 0);
  EXPECT_EQ(set({"k"}).exit_code, 2);
  folder_.write("template.txt", std::as_bytes(std::span(std::string_view("{% x %}\n"))));
  EXPECT_EQ(set({"tokenizer.chat_template", "--from", (folder_.path() / "template.txt").string()}).exit_code, 0);
  EXPECT_EQ(get("tokenizer.chat_template"), "{% x %}\n\n");
  EXPECT_EQ(hk_run({"metadata", "remove", model, "new.json"}).exit_code, 0);
  EXPECT_EQ(hk_run({"metadata", "remove", model, "new.json"}).exit_code, 1);
  EXPECT_EQ(hk_run({"metadata", "get", model, "new.json"}).exit_code, 1);
  EXPECT_EQ(hk_run({"verify", model}).exit_code, 0);
}

TEST_F(ContainerCommands, AppendixGrowsAndRollsBack) {
  HK_FIXTURE(fixture, "fixtures/hk/all-types.hk");
  const auto model = copy(fixture);
  EXPECT_EQ(hk_run({"appendix", "list", model}).out, "no records\n");
  const auto data = folder_.write("data", std::vector<std::byte>(5000)).string();
  const auto append = [&](const std::string& name) {
    return hk_run({"appendix", "append", model, "--type", "lora_adapter", "--name", name, "--target", "t", "--data",
                   data, "--loss", "0.5", "--timestamp", "0"});
  };
  for (const auto* name : {"one", "two", "three"}) EXPECT_EQ(append(name).exit_code, 0);
  const auto listing = hk_run({"appendix", "list", model}).out;
  EXPECT_TRUE(contains(listing, "3: lora_adapter \"three\", generation 3, 1970-01-01T00:00:00Z, active")) << listing;
  EXPECT_EQ(hk_run({"appendix", "verify", model}).exit_code, 0);
  EXPECT_EQ(hk_run({"appendix", "rollback", model, "--generation", "1"}).exit_code, 0);
  EXPECT_FALSE(contains(hk_run({"appendix", "list", model}).out, "two"));
  EXPECT_EQ(append("four").exit_code, 0);
  EXPECT_TRUE(contains(hk_run({"appendix", "list", model}).out, "\"four\", generation 2"));
  EXPECT_EQ(hk_run({"verify", model}).exit_code, 0);
  EXPECT_EQ(hk_run({"appendix", "append", model, "--type", "none", "--name", "x"}).exit_code, 2);
}

TEST_F(ContainerCommands, ABrokenLineageIsExitCodeOne) {
  HK_FIXTURE(folder, "fixtures/hk");
  EXPECT_EQ(hk_run({"appendix", "verify", (folder / "appendix-old-hash.hk").string()}).exit_code, 0);
  for (const auto* name : {"appendix-tampered.hk", "appendix-missing-middle.hk", "broken/appendix-cut.hk",
                           "broken/appendix-header-cut.hk", "broken/appendix-in-header.hk"})
    EXPECT_EQ(hk_run({"appendix", "verify", (folder / name).string()}).exit_code, 1) << name;
}

}  // namespace
}  // namespace hk::cli
