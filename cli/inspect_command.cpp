// hk-run inspect: what is inside a model file: header, metadata, tensors, storage types, parameters.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/family_remarks.h"
#include "cli/text.h"
#include "engine/container/gguf_reader.h"
#include "engine/container/hk_reader.h"
#include "engine/container/model_reader.h"

namespace hk::cli {
namespace {

using engine::Metadata;
using engine::MetadataEntry;
using engine::ModelReader;
using engine::TensorView;
using engine::ValueType;
using Json = nlohmann::ordered_json;

constexpr std::size_t kShownItems = 8;   // of an array, in a listing
constexpr std::size_t kShownText = 160;  // bytes of a text, in a listing

/// Fields of the file header, in file order.
using HeaderFields = std::vector<std::pair<std::string, Json>>;

/// What there is to say about the file, a sentence each.
using Remarks = std::vector<std::string>;

struct Options {
  std::string file;
  bool json = false;
  bool full = false;
};

std::uint64_t tensor_bytes(const TensorView& tensor) {
  return tensor.data.size() + tensor.scales.size() + tensor.residual.size();
}

/// Tensors and bytes a storage type.
struct TypeUse {
  std::uint64_t tensors = 0;
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;
};

struct Totals {
  std::map<std::string, TypeUse> types;
  std::uint64_t parameters = 0;
  std::uint64_t bytes = 0;
  std::uint64_t problems = 0;
};

Totals add_up(const ModelReader& model) {
  Totals totals;
  for (const auto& tensor : model.tensors()) {
    if (!tensor.problem.empty()) ++totals.problems;
    // A shared reference names weights that are counted where they lie; sizes of a broken entry mean nothing.
    if (!tensor.shared_with.empty() || tensor.type == engine::StorageType::kSharedRef || !tensor.problem.empty())
      continue;
    auto& use = totals.types[std::string(kernels::storage_type_name(tensor.type))];
    ++use.tensors;
    use.elements += tensor.elements();
    use.bytes += tensor_bytes(tensor);
    totals.parameters += tensor.elements();
    totals.bytes += tensor_bytes(tensor);
  }
  return totals;
}

std::string shortened(std::string text, bool full) {
  if (full || text.size() <= kShownText) return text;
  std::size_t cut = kShownText;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) --cut;  // not inside a character
  return fmt::format("{}... ({} bytes)", text.substr(0, cut), text.size());
}

// --- json ---

Json number_json(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? Json("nan") : Json(value > 0 ? "inf" : "-inf");
}

/// The first elements of an array and its size, or all of them.
template <typename Array, typename Convert>
Json array_json(const Array& array, std::size_t count, std::string_view kind, bool full, Convert convert) {
  Json items = Json::array();
  const std::size_t shown = full ? count : std::min(count, kShownItems);
  for (std::size_t i = 0; i < shown; ++i) items.push_back(convert(array[i]));
  if (shown == count) return items;
  return Json{{"array", kind}, {"count", count}, {"first", std::move(items)}};
}

Json value_json(const Metadata& metadata, const MetadataEntry& entry, bool full) {
  const std::string_view raw(reinterpret_cast<const char*>(entry.value.data()), entry.value.size());
  switch (entry.type) {
    case ValueType::kString:
      return raw;
    case ValueType::kInt64:
      return *metadata.integer(entry.key);
    case ValueType::kFloat64:
      return number_json(*metadata.number(entry.key));
    case ValueType::kBool:
      return *metadata.boolean(entry.key);
    case ValueType::kJson:
    case ValueType::kBytes:
      break;
  }
  if (metadata.is_array(entry.key)) {
    // The element kind is whichever getter accepts the value: integers are numbers too, so they are asked first.
    try {
      if (const auto list = metadata.strings(entry.key))
        return array_json(*list, list->size(), "string", full, [](std::string_view text) { return Json(text); });
    } catch (const Error&) {
    }
    try {
      if (const auto list = metadata.integers(entry.key))
        return array_json(*list, list->size(), "i32", full, [](std::int32_t value) { return Json(value); });
    } catch (const Error&) {
    }
    if (const auto list = metadata.floats(entry.key))
      return array_json(*list, list->size(), "f32", full,
                        [](float value) { return number_json(static_cast<double>(value)); });
  }
  if (entry.type == ValueType::kJson) return Json{{"json", raw}};
  return Json{{"bytes", entry.value.size()}};
}

Json tensor_json(const TensorView& tensor) {
  Json shape = Json::array();
  for (std::uint32_t i = 0; i < tensor.ndim; ++i) shape.push_back(tensor.shape[i]);
  Json json{{"name", tensor.name},          {"type", kernels::storage_type_name(tensor.type)},
            {"shape", std::move(shape)},    {"bytes", tensor.data.size()},
            {"offset", tensor.file_offset}, {"shard", tensor.shard}};
  if (!tensor.scales.empty()) json["scale_bytes"] = tensor.scales.size();
  if (!tensor.residual.empty()) json["residual_bytes"] = tensor.residual.size();
  if (tensor.tile_layout != engine::TileLayout::kRowMajor) json["tile_layout"] = static_cast<int>(tensor.tile_layout);
  if (tensor.sparsity != engine::Sparsity::kNone) json["sparsity"] = static_cast<int>(tensor.sparsity);
  if (!tensor.shared_with.empty()) json["shared_with"] = tensor.shared_with;
  if (!tensor.problem.empty()) json["problem"] = tensor.problem;
  return json;
}

Json inspect_json(const ModelReader& model, const Totals& totals, const HeaderFields& header, const Remarks& remarks,
                  bool full) {
  Json json{{"file", model.path()}, {"container", model.container()}};
  for (const auto& [name, value] : header) json["header"][name] = value;
  json["metadata"] = Json::object();
  for (const auto& entry : model.metadata().entries()) {
    try {
      json["metadata"][std::string(entry.key)] = value_json(model.metadata(), entry, full);
    } catch (const Error& error) {
      json["metadata"][std::string(entry.key)] = Json{{"problem", error.what()}};
    }
  }
  json["tensors"] = Json::array();
  for (const auto& tensor : model.tensors()) json["tensors"].push_back(tensor_json(tensor));
  for (const auto& [name, use] : totals.types)
    json["types"][name] = {{"tensors", use.tensors}, {"elements", use.elements}, {"bytes", use.bytes}};
  json["parameters"] = totals.parameters;
  json["tensor_bytes"] = totals.bytes;
  json["problems"] = totals.problems;
  json["remarks"] = Json::array();
  for (const auto& remark : remarks) json["remarks"].push_back(remark);
  return json;
}

// --- header ---

HeaderFields header_fields(const ModelReader& model) {
  HeaderFields fields;
  if (const auto* gguf = dynamic_cast<const engine::GgufReader*>(&model)) {
    fields = {{"version", gguf->version()}, {"alignment", gguf->alignment()}, {"splits", gguf->files().size()}};
  }
  if (const auto* hk = dynamic_cast<const engine::HkReader*>(&model)) {
    const auto& header = hk->header();
    fields = {{"version", fmt::format("{}.{}", header.version_major, header.version_minor)},
              {"flags", engine::hk_flag_names(header.flags)},
              {"alignment", header.alignment},
              {"shards", header.shards()},
              {"metadata_offset", header.metadata_offset},
              {"metadata_size", header.metadata_size},
              {"tensor_toc_offset", header.tensor_toc_offset},
              {"tensor_toc_size", header.tensor_toc_size},
              {"tensor_data_offset", header.tensor_data_offset},
              {"appendix_offset", header.appendix_offset}};
  }
  fields.emplace_back("metadata_pairs", model.metadata().entries().size());
  fields.emplace_back("tensors", model.tensors().size());
  fields.emplace_back("file_bytes", model.mapped_bytes());
  return fields;
}

// --- listing ---

void print_listing(const ModelReader& model, const Totals& totals, const HeaderFields& header, const Remarks& remarks,
                   bool full) {
  std::string out =
      fmt::format("{}\n\nHeader\n  container            {}\n", printable(model.path()), model.container());
  for (const auto& [name, value] : header)
    out += fmt::format("  {:20} {}\n", name, value.is_string() ? value.get<std::string>() : value.dump());

  out += "\nMetadata\n";
  for (const auto& entry : model.metadata().entries()) {
    std::string value;
    try {
      const std::size_t items = full ? std::numeric_limits<std::size_t>::max() : kShownItems;
      value = shortened(printable(model.metadata().to_text(entry, items)), full);
    } catch (const Error& error) {
      value = fmt::format("PROBLEM: {}", printable(error.what()));
    }
    out += fmt::format("  {:44} {:8} {}\n", printable(entry.key), engine::value_type_name(entry.type), value);
  }

  std::size_t name_width = 4, shape_width = 5;
  for (const auto& tensor : model.tensors()) {
    name_width = std::max(name_width, printable(tensor.name).size());
    shape_width = std::max(shape_width, tensor.shape_text().size());
  }
  out += fmt::format("\nTensors\n  {:{}}  {:10}  {:{}}  {:>15}  {:>15}\n", "name", name_width, "type", "shape",
                     shape_width, "bytes", "offset");
  for (const auto& tensor : model.tensors()) {
    out += fmt::format("  {:{}}  {:10}  {:{}}  {:>15}  {:>15}", printable(tensor.name), name_width,
                       kernels::storage_type_name(tensor.type), tensor.shape_text(), shape_width,
                       grouped(tensor_bytes(tensor)), grouped(tensor.file_offset));
    if (tensor.shard != 0) out += fmt::format("  file {}", tensor.shard + 1);
    if (!tensor.shared_with.empty()) out += fmt::format("  shares {}", printable(tensor.shared_with));
    if (!tensor.problem.empty()) out += fmt::format("  PROBLEM: {}", printable(tensor.problem));
    out += '\n';
  }

  out += "\nStorage types\n";
  for (const auto& [name, use] : totals.types)
    out +=
        fmt::format("  {:10}  {:>6} tensors  {:>10}  {:>6.3f} bits/weight\n", name, use.tensors, bytes_text(use.bytes),
                    use.elements == 0 ? 0.0 : 8.0 * static_cast<double>(use.bytes) / static_cast<double>(use.elements));
  out += fmt::format("\nParameters  {} ({}), {} of tensors\n", grouped(totals.parameters),
                     count_text(totals.parameters), bytes_text(totals.bytes));
  if (totals.problems != 0) out += fmt::format("Problems    {} tensors cannot be used, see above\n", totals.problems);
  for (const auto& remark : remarks) out += fmt::format("Note        {}\n", printable(remark));
  std::cout << out;
}

void run(const Options& options) {
  const std::shared_ptr<ModelReader> model = engine::open_model(options.file);
  Remarks remarks(model->remarks().begin(), model->remarks().end());
  for (std::string& remark : family_remarks(model)) remarks.push_back(std::move(remark));
  const auto totals = add_up(*model);
  const auto header = header_fields(*model);
  if (options.json)
    // Foreign texts may hold broken UTF-8: replaced, so that the output is always JSON.
    std::cout << inspect_json(*model, totals, header, remarks, options.full)
                     .dump(2, ' ', false, Json::error_handler_t::replace)
              << '\n';
  else
    print_listing(*model, totals, header, remarks, options.full);
}

}  // namespace

void add_inspect_command(CLI::App& app) {
  auto* command =
      app.add_subcommand("inspect", "List what a model file holds: header, metadata, tensors, storage types");
  const auto options = std::make_shared<Options>();
  command->add_option("file", options->file, "A .hk or .gguf file (any shard or split of a set)")->required();
  command->add_flag("--json", options->json, "Print JSON");
  command->add_flag("--full", options->full, "Print arrays and texts in full, not their beginnings");
  command->callback([options] { run(*options); });
}

}  // namespace hk::cli
