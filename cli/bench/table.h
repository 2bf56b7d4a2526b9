// Rows of named values, written as Markdown, CSV, JSON, JSON lines or SQL.
//
// Layer: cli. Each row is written as soon as it is there. The names are those of the fields that other benchmarking
// tools for the same models use, so that results can be put side by side.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace hk::cli {

using BenchValue = std::variant<std::string, std::int64_t, double, std::vector<double>>;

struct BenchField {
  std::string name;
  BenchValue value;
};
/// What a person sees of a row; empty in all other formats.
struct BenchColumn {
  std::string title;
  std::string text;
  std::size_t width = 0;  ///< at least
};
struct BenchRow {
  std::vector<BenchField> fields;
  std::vector<BenchColumn> columns;
};

enum class BenchFormat { kMarkdown, kCsv, kJson, kJsonLines, kSql };
/// Throws hk::Error (usage) naming the option.
BenchFormat parse_bench_format(const std::string& name);

class BenchTable {
 public:
  /// `sql_table`: name of the table in SQL.
  BenchTable(BenchFormat format, std::string sql_table) : format_(format), sql_table_(std::move(sql_table)) {}

  void add(const BenchRow& row);
  /// Ends the output, after the last row.
  void finish();
  /// A line below the table; Markdown only.
  void remark(const std::string& line);

 private:
  void add_markdown(const BenchRow& row);

  BenchFormat format_;
  std::string sql_table_;
  std::size_t rows_ = 0;
  std::vector<std::string> titles_;
  std::vector<std::size_t> widths_;
};

}  // namespace hk::cli
