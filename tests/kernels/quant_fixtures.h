// Reads the reference blocks of fixtures/quants: the shared folder, or the smaller copy in tests/data.
//
// The copy holds the decoded values as NAME.f32.bin.zst and the source values once for all formats that share them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/quant/format.h"
#include "tests/support/fixtures.h"

namespace hk::test {

/// One line of index.tsv.
struct QuantIndexRow {
  std::string name;
  std::int32_t gguf_type = 0;
  std::uint32_t elements = 0;
  std::uint32_t bytes = 0;
  std::size_t quantized = 0;  ///< blocks made from the source values; the first section
  std::size_t blocks = 0;     ///< of all sections
  std::size_t source = 0;     ///< elements
};

inline std::vector<QuantIndexRow> quant_index(const std::filesystem::path& folder) {
  std::vector<QuantIndexRow> rows;
  std::ifstream in(folder / "index.tsv");
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    QuantIndexRow row;
    std::size_t random = 0;
    std::size_t sweep = 0;
    std::size_t edge = 0;
    std::istringstream words(line);
    words >> row.name >> row.gguf_type >> row.elements >> row.bytes >> row.quantized >> random >> sweep >> edge >>
        row.source;
    if (!words) throw std::runtime_error("bad line in index.tsv: " + line);
    row.blocks = row.quantized + random + sweep + edge;
    rows.push_back(row);
  }
  return rows;
}

inline std::vector<std::byte> quant_file(const std::filesystem::path& folder, const std::string& name) {
  if (std::filesystem::exists(folder / name)) return read_file(folder / name);
  return read_zst(folder / (name + ".zst"));
}

inline std::vector<float> as_floats(const std::vector<std::byte>& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

/// The values that the first section of a format was quantized from.
inline std::vector<float> quant_source(const std::filesystem::path& folder, const std::string& format) {
  if (std::filesystem::exists(folder / (format + ".src.f32.bin")))
    return as_floats(read_file(folder / (format + ".src.f32.bin")));
  const bool ternary = format == "tq1_0" || format == "tq2_0";
  return as_floats(read_file(folder / (ternary ? "tq1_0.src.f32.bin" : "q4_0.src.f32.bin")));
}

}  // namespace hk::test
