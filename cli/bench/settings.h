// What the options of hk-run bench ask for: lists and ranges, the tests and the configurations to compare.
//
// Layer: cli.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "engine/generate/speed_test.h"
#include "kernels/kernels.h"

namespace hk::cli {

/// "512", "1,2,4", "1-8", "0-4096+1024", "8-64*2" and mixtures of them, in the order given. Throws hk::Error (usage)
/// naming `option`; at most some thousand values.
std::vector<std::size_t> parse_counts(std::string_view text, std::string_view option);

/// "a,b" as its parts; empty parts are refused.
std::vector<std::string> split_list(std::string_view text, std::string_view option);

/// One way to run: a file and how.
struct BenchSetting {
  std::size_t file = 0;  ///< index
  int threads = 0;
  int threads_batch = 0;
  kernels::KvType kv = kernels::KvType::kF16;
  std::size_t chunk = 512;
  const kernels::KernelTable* kernels = nullptr;
};

/// "pp512", "tg128", "pp512+tg128", with " @ d4096" at a depth.
std::string test_name(const engine::SpeedTest& test);

}  // namespace hk::cli
