// From measurements to rows of the table, and the sentences below it.
//
// Layer: cli.
#pragma once

#include <string>
#include <vector>

#include "cli/bench/measure.h"
#include "cli/bench/table.h"

namespace hk::cli {

/// What is the same for every row.
struct BenchContext {
  std::string cpu;
  std::string started;  ///< UTC, ISO 8601
  std::size_t repetitions = 0;
  bool many_kernels = false;  ///< columns that show only when settings differ in it
  bool many_kv = false;
  bool many_chunks = false;
  bool batch_threads = false;
};

/// One test with one setting; `reference` is the same test with the first setting, or null for that one.
BenchRow speed_row(const BenchContext& context, const BenchFile& file, const BenchResult& result,
                   const BenchResult* reference);
/// The same for several sequences side by side.
BenchRow batch_row(const BenchContext& context, const BenchFile& file, const BenchResult& result);

/// "pp512: B is 1.043 times as fast as A [1.031..1.055]", or that no difference shows.
std::string verdict(const BenchResult& reference, const BenchResult& result, const std::string& reference_name,
                    const std::string& name);
/// What tells this setting from others: "file.hk, 2 threads, avx2".
std::string setting_name(const BenchContext& context, const BenchFile& file, const BenchSetting& setting);
/// The folder is left out.
std::string file_name(const std::string& path);

}  // namespace hk::cli
