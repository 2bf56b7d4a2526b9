// The answers of several shards as one file.
//
// Layer: cli/batch.
#pragma once

#include <string>
#include <vector>

namespace hk::cli {

struct MergeOptions {
  std::string out;
  std::vector<std::string> parts;
  std::string input;     ///< the requests; "": not given, then completeness is not checked
  bool text = false;     ///< the input is a prompt a line
  bool force = false;    ///< an existing `out` is replaced
  bool partial = false;  ///< missing answers are told but no error
};

/// With the input in its order, else part after part. Throws hk::Error when a part is cut or holds something else, an
/// answer is there twice, or (with the input) one is missing or nobody asked for it; `out` is not touched then.
void merge_answers(const MergeOptions& options);

}  // namespace hk::cli
