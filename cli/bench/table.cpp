// The five ways to write a row (see table.h).
#include "cli/bench/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "cli/streams.h"

namespace hk::cli {
namespace {

using Json = nlohmann::ordered_json;

/// Numbers that are none (a ratio of nothing) have no spelling in JSON and SQL.
Json json_value(const BenchValue& value) {
  return std::visit(
      [](const auto& v) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(v)>, double>) {
          return std::isfinite(v) ? Json(v) : Json(nullptr);
        } else {
          return Json(v);
        }
      },
      value);
}

std::string json_row(const BenchRow& row) {
  Json json;
  for (const BenchField& field : row.fields) json[field.name] = json_value(field.value);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool is_list(const BenchField& field) { return std::holds_alternative<std::vector<double>>(field.value); }

std::string plain(const BenchValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  const Json json = json_value(value);
  return json.is_null() ? std::string() : json.dump();
}

std::string quoted(const std::string& text, char quote) {
  std::string out(1, quote);
  for (const char c : text) {
    if (c == quote) out += c;
    out += c;
  }
  return out + quote;
}

std::string csv_line(const BenchRow& row, bool header) {
  std::string line;
  for (const BenchField& field : row.fields) {
    if (is_list(field)) continue;  // samples are for JSON
    if (!line.empty()) line += ',';
    line += quoted(header ? field.name : plain(field.value), '"');
  }
  return line + '\n';
}

std::string sql_table(const BenchRow& row, const std::string& table) {
  std::string columns;
  for (const BenchField& field : row.fields) {
    if (is_list(field)) continue;
    columns += fmt::format("{}  {} {}", columns.empty() ? "" : ",\n", field.name,
                           std::holds_alternative<std::string>(field.value)    ? "TEXT"
                           : std::holds_alternative<std::int64_t>(field.value) ? "INTEGER"
                                                                               : "REAL");
  }
  return fmt::format("CREATE TABLE IF NOT EXISTS {} (\n{}\n);\n\n", table, columns);
}

std::string sql_row(const BenchRow& row, const std::string& table) {
  std::string names, values;
  for (const BenchField& field : row.fields) {
    if (is_list(field)) continue;
    names += (names.empty() ? "" : ", ") + field.name;
    const std::string text = plain(field.value);
    const bool number = !std::holds_alternative<std::string>(field.value);
    values += (values.empty() ? "" : ", ") + (!number ? quoted(text, '\'') : text.empty() ? "NULL" : text);
  }
  return fmt::format("INSERT INTO {} ({}) VALUES ({});\n", table, names, values);
}

/// Characters, not bytes.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

BenchFormat parse_bench_format(const std::string& name) {
  if (name == "md") return BenchFormat::kMarkdown;
  if (name == "csv") return BenchFormat::kCsv;
  if (name == "json") return BenchFormat::kJson;
  if (name == "jsonl") return BenchFormat::kJsonLines;
  if (name == "sql") return BenchFormat::kSql;
  throw Error(fmt::format("-o: '{}' is no output format; there are md, csv, json, jsonl and sql", name),
              ErrorKind::kUsage);
}

void BenchTable::add_markdown(const BenchRow& row) {
  const auto padded = [](const std::string& text, std::size_t width, bool left) {
    const std::string blanks(width - std::min(width, width_of(text)), ' ');
    return left ? text + blanks : blanks + text;
  };
  if (rows_ == 0) {
    std::string header = "|", rule = "|";
    for (const BenchColumn& column : row.columns) {
      const std::size_t width = std::max({width_of(column.title), width_of(column.text), column.width});
      const bool left = widths_.empty();  // the first column is a name
      header += fmt::format(" {} |", padded(column.title, width, left));
      rule += fmt::format(" {}{} |", std::string(width - 1, '-'), left ? '-' : ':');
      widths_.push_back(width);
    }
    write_answer(header + '\n' + rule + '\n');
  }
  std::string line = "|";
  for (std::size_t i = 0; i < row.columns.size(); ++i)
    line += fmt::format(" {} |", padded(row.columns[i].text, widths_[i], i == 0));
  write_answer(line + '\n');
}

void BenchTable::add(const BenchRow& row) {
  switch (format_) {
    case BenchFormat::kMarkdown:
      add_markdown(row);
      break;
    case BenchFormat::kCsv:
      write_answer((rows_ == 0 ? csv_line(row, true) : std::string()) + csv_line(row, false));
      break;
    case BenchFormat::kJson:
      write_answer((rows_ == 0 ? "[\n  " : ",\n  ") + json_row(row));
      break;
    case BenchFormat::kJsonLines:
      write_answer(json_row(row) + '\n');
      break;
    case BenchFormat::kSql:
      write_answer((rows_ == 0 ? sql_table(row, sql_table_) : std::string()) + sql_row(row, sql_table_));
      break;
  }
  ++rows_;
}

void BenchTable::finish() {
  if (format_ == BenchFormat::kJson) write_answer(rows_ == 0 ? "[]\n" : "\n]\n");
}

void BenchTable::remark(const std::string& line) {
  if (format_ == BenchFormat::kMarkdown) write_answer(line + '\n');
}

}  // namespace hk::cli
