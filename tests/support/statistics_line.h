// What a test reads in the lines of statistics that hk-run writes to stderr.
#pragma once

#include <regex>
#include <string>
#include <utility>
#include <vector>

namespace hk::test {

/// "prompt 40 tokens (30 cached)" of each turn.
inline std::vector<std::pair<int, int>> prompt_counts(const std::string& err) {
  std::vector<std::pair<int, int>> counts;
  const std::regex line("prompt ([0-9]+) tokens \\(([0-9]+) cached\\)");
  for (std::sregex_iterator it(err.begin(), err.end(), line), end; it != end; ++it)
    counts.emplace_back(std::stoi((*it)[1]), std::stoi((*it)[2]));
  return counts;
}

}  // namespace hk::test
