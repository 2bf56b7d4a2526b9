// hk-run bench from outside: every output parses and agrees with what was asked; no time is judged.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/run_program.h"

namespace hk::test {
namespace {

using nlohmann::json;

const std::string kModel = std::string(source_root()) + "/demo/hinoki.hk";

/// A short run: "bench MODEL -r 2 -t 1 ARGUMENTS".
Outcome bench(std::vector<std::string> more) {
  std::vector<std::string> arguments = {"bench", kModel, "-r", "2"};
  if (std::find(more.begin(), more.end(), "-t") == more.end()) arguments.insert(arguments.end(), {"-t", "1"});
  arguments.insert(arguments.end(), more.begin(), more.end());
  return hk_run(arguments);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// Cells of a line of quoted CSV.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  for (std::size_t i = 0; i < line.size();) {
    EXPECT_EQ(line[i], '"') << line;
    std::string cell;
    for (++i; i < line.size() && (line[i] != '"' || line.substr(i, 2) == "\"\""); ++i) {
      if (line[i] == '"') ++i;
      cell += line[i];
    }
    cells.push_back(cell);
    i += 2;
  }
  return cells;
}

TEST(Bench, JsonHasEveryTestInOrder) {
  const auto run = bench({"-p", "5,8", "-n", "3", "-pg", "4,2", "-d", "0,7", "-o", "json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto rows = json::parse(run.out);
  ASSERT_EQ(rows.size(), 8U);
  const std::vector<std::vector<int>> expected = {{5, 0, 0}, {8, 0, 0}, {0, 3, 0}, {4, 2, 0},
                                                  {5, 0, 7}, {8, 0, 7}, {0, 3, 7}, {4, 2, 7}};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& row = rows[i];
    EXPECT_EQ(row["n_prompt"], expected[i][0]);
    EXPECT_EQ(row["n_gen"], expected[i][1]);
    EXPECT_EQ(row["n_depth"], expected[i][2]);
    EXPECT_EQ(row["n_threads"], 1);
    EXPECT_EQ(row["samples_ts"].size(), 2U);
    EXPECT_EQ(row["samples_ns"].size(), 2U);
    EXPECT_EQ(row["verdict"], "reference");
    EXPECT_EQ(row["checksum"].get<std::string>().size(), 16U);
    for (const char* positive : {"avg_ns", "avg_ts", "median_ts", "low_ts", "high_ts", "gbs", "gmacs", "peak_fraction",
                                 "peak_read_gbs", "peak_int8_gmacs", "peak_f32_gmacs", "private_bytes", "mapped_bytes",
                                 "load_ns", "model_size", "model_n_params"})
      EXPECT_GT(row[positive].get<double>(), 0) << positive;
    EXPECT_LE(row["low_ts"], row["median_ts"]);
    EXPECT_LE(row["median_ts"], row["high_ts"]);
    EXPECT_EQ(row["first_token_ns"].get<double>() > 0, expected[i][0] > 0);
  }
}

TEST(Bench, JsonLinesSayTheSameTokensForAnyThreadsAndKernels) {
  const auto run = bench({"-p", "9", "-n", "6", "-d", "0", "-t", "1,2", "-tb", "1,2", "-b", "4,512", "-o", "jsonl"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  std::set<std::string> prompt_sums, generate_sums;
  std::size_t rows = 0, references = 0;
  for (const std::string& line : lines_of(run.out)) {
    const auto row = json::parse(line);
    (row["n_prompt"] == 0 ? generate_sums : prompt_sums).insert(row["checksum"]);
    references += row["verdict"] == "reference" ? 1 : 0;
    EXPECT_LE(row["ratio_low"].is_null() ? 0 : row["ratio_low"].get<double>(), row["ratio"].get<double>());
    ++rows;
  }
  EXPECT_EQ(rows, 16U);
  EXPECT_EQ(references, 2U);
  EXPECT_EQ(prompt_sums.size(), 1U);
  EXPECT_EQ(generate_sums.size(), 1U);
}

TEST(Bench, CsvAndSqlHaveTheSameColumns) {
  const auto csv = bench({"-p", "3", "-n", "2", "-o", "csv"});
  ASSERT_EQ(csv.exit_code, 0) << csv.err;
  const auto lines = lines_of(csv.out);
  ASSERT_EQ(lines.size(), 4U) << csv.out;  // header, pp3, tg2, tg2 at depth
  const auto names = cells_of(lines[0]);
  for (const std::string& line : lines) EXPECT_EQ(cells_of(line).size(), names.size()) << line;
  EXPECT_EQ(std::count(names.begin(), names.end(), "avg_ts"), 1);
  EXPECT_EQ(std::count(names.begin(), names.end(), "samples_ns"), 0);

  const auto sql = bench({"-p", "3", "-n", "2", "-o", "sql"});
  ASSERT_EQ(sql.exit_code, 0) << sql.err;
  EXPECT_TRUE(sql.out.starts_with("CREATE TABLE IF NOT EXISTS test (\n  version TEXT,\n")) << sql.out;
  std::size_t inserts = 0;
  for (const std::string& line : lines_of(sql.out)) {
    if (!line.starts_with("INSERT INTO test (version, ")) continue;
    ++inserts;
    EXPECT_TRUE(line.ends_with(");")) << line;
  }
  EXPECT_EQ(inserts, 3U);
  for (const std::string& name : names) EXPECT_NE(sql.out.find("\n  " + name + " "), std::string::npos) << name;
}

TEST(Bench, MarkdownIsATable) {
  const auto run = bench({"-p", "3", "-n", "2", "-t", "1,2"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto lines = lines_of(run.out);
  ASSERT_GE(lines.size(), 8U) << run.out;
  const auto bars = std::count(lines[0].begin(), lines[0].end(), '|');
  EXPECT_EQ(lines[1].find_first_not_of("|-: "), std::string::npos) << lines[1];
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(std::count(lines[i].begin(), lines[i].end(), '|'), bars) << lines[i];
  EXPECT_NE(run.out.find(" pp3 |"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("hinoki.hk: loaded in "), std::string::npos) << run.out;
  std::size_t verdicts = 0;
  for (const std::string& line : lines) verdicts += line.starts_with("pp3: ") || line.starts_with("tg2") ? 1 : 0;
  EXPECT_EQ(verdicts, 3U) << run.out;
}

TEST(Bench, SequencesSideBySide) {
  const auto run = bench({"--batch", "1,3", "-p", "4", "-n", "5", "-o", "jsonl"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto lines = lines_of(run.out);
  ASSERT_EQ(lines.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto row = json::parse(lines[i]);
    const int n = i == 0 ? 1 : 3;
    EXPECT_EQ(row["pl"], n);
    EXPECT_EQ(row["n_kv"], 9 * n);
    for (const char* positive :
         {"t_pp", "speed_pp", "t_tg", "speed_tg", "t", "speed", "peak_fraction_pp", "peak_fraction_tg"})
      EXPECT_GT(row[positive].get<double>(), 0) << positive;
  }
  const auto table = bench({"--batch", "2", "-p", "4", "-n", "5"});
  ASSERT_EQ(table.exit_code, 0) << table.err;
  for (const char* column : {"N_KV", "T_PP s", "S_PP t/s", "T_TG s", "S_TG t/s"})
    EXPECT_NE(table.out.find(column), std::string::npos) << column;
}

TEST(Bench, RangesAndOneRepetitionWithoutWarmUp) {
  const auto run =
      hk_run({"bench", kModel, "-p", "2-8*2,3-7+2", "-n", "0", "-t", "1", "-r", "1", "--no-warmup", "-o", "jsonl"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  std::vector<int> prompts;
  for (const std::string& line : lines_of(run.out)) {
    const auto row = json::parse(line);
    prompts.push_back(row["n_prompt"]);
    EXPECT_GT(row["gmacs"].get<double>(), 0);
  }
  EXPECT_EQ(prompts, (std::vector<int>{2, 4, 8, 3, 5, 7}));
}

TEST(Bench, RefusesWhatMakesNoSense) {
  for (const std::vector<std::string>& wrong : std::vector<std::vector<std::string>>{{"-p", "a"},
                                                                                     {"-p", "4-2"},
                                                                                     {"-p", "1-8*1"},
                                                                                     {"-p", "0-8*2"},
                                                                                     {"-p", "1,,2"},
                                                                                     {"-p", "99999999999999999999"},
                                                                                     {"-p", "0-9999999"},
                                                                                     {"-p", "0", "-n", "0"},
                                                                                     {"-pg", "3"},
                                                                                     {"-o", "xml"},
                                                                                     {"--kv", "q3"},
                                                                                     {"--kernels", "sparc"},
                                                                                     {"-t", "0"},
                                                                                     {"-t", "300"},
                                                                                     {"-b", "0"},
                                                                                     {"-r", "0"},
                                                                                     {"--batch", "0"},
                                                                                     {"--batch", "2", "-pg", "1,1"}}) {
    const auto run = bench(wrong);
    EXPECT_EQ(run.exit_code, 2) << wrong[0] << ' ' << wrong[1] << ": " << run.err;
    EXPECT_EQ(run.out, "") << wrong[0];
    EXPECT_NE(run.err.find("hk-run: "), std::string::npos);
  }
  EXPECT_EQ(hk_run({"bench", "/nowhere/model.hk"}).exit_code, 1);
}

}  // namespace
}  // namespace hk::test
