// What a line of an answer file is, for whoever goes on with it or joins it with others.
//
// Layer: cli/batch.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hk::cli {

struct ResultLine {
  std::string key;  ///< see InputLine::key
  bool failed = false;
};

/// Absent for what is no whole answer or error of a batch.
std::optional<ResultLine> read_result_line(std::string_view text);

}  // namespace hk::cli
