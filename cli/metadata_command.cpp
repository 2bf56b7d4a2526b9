// hk-run metadata: list, read, set and remove the key/value pairs of a model file.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstring>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/text.h"
#include "engine/container/mapped_file.h"
#include "engine/container/metadata_blob.h"
#include "engine/container/metadata_edit.h"
#include "engine/container/model_reader.h"

namespace hk::cli {
namespace {

using engine::MetadataChange;
using engine::MetadataEntry;
using engine::ValueType;

struct Options {
  std::string file;
  std::string key;
  std::optional<std::string> value;
  std::string from;
  std::string type;
};

constexpr std::pair<std::string_view, ValueType> kTypes[] = {
    {"string", ValueType::kString}, {"int", ValueType::kInt64}, {"float", ValueType::kFloat64},
    {"bool", ValueType::kBool},     {"json", ValueType::kJson}, {"bytes", ValueType::kBytes},
};

[[noreturn]] void refuse_value(std::string_view value, std::string_view expected) {
  throw Error(fmt::format("{:?} is no value of this type; {} was expected", value, expected), ErrorKind::kUsage);
}

template <typename T>
std::vector<std::byte> parse_number(std::string_view text, std::string_view expected) {
  T value{};
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size()) refuse_value(text, expected);
  std::vector<std::byte> bytes(sizeof(value));
  std::memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

std::vector<std::byte> parse_hex(std::string_view text) {
  constexpr std::string_view kExpected = "an even number of hexadecimal digits";
  if (text.size() % 2 != 0) refuse_value(text, kExpected);
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    std::uint8_t value = 0;
    const auto result = std::from_chars(text.data() + i, text.data() + i + 2, value, 16);
    if (result.ec != std::errc() || result.ptr != text.data() + i + 2) refuse_value(text, kExpected);
    bytes.push_back(std::byte{value});
  }
  return bytes;
}

std::vector<std::byte> encode(ValueType type, std::string_view text) {
  switch (type) {
    case ValueType::kInt64:
      return parse_number<std::int64_t>(text, "a whole number of 64 bits");
    case ValueType::kFloat64:
      return parse_number<double>(text, "a number");
    case ValueType::kBool:
      if (text != "true" && text != "false") refuse_value(text, "true or false");
      return {std::byte{text == "true" ? std::uint8_t{1} : std::uint8_t{0}}};
    case ValueType::kBytes:
      return parse_hex(text);
    default:
      break;
  }
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

/// The type asked for, else that of the value there is, else string.
ValueType choose_type(const Options& options) {
  for (const auto& [name, type] : kTypes)
    if (options.type == name) return type;
  const auto reader = engine::open_model(options.file);
  const auto* entry = reader->metadata().find(options.key);
  if (entry == nullptr) return ValueType::kString;
  if (entry->type == ValueType::kBytes)
    throw Error(
        fmt::format("metadata key {:?} holds bytes; say --type bytes to replace them by hexadecimal ones, or --type "
                    "json for an array",
                    options.key),
        ErrorKind::kUsage);
  return entry->type;
}

/// A value as text that `set` with the same type would take; arrays as json.
std::string plain_text(const engine::Metadata& metadata, const MetadataEntry& entry) {
  const std::string text(reinterpret_cast<const char*>(entry.value.data()), entry.value.size());
  switch (entry.type) {
    case ValueType::kString:
      return std::string(*metadata.string(entry.key));
    case ValueType::kJson:
      return text;
    case ValueType::kBytes:
      break;
    default:
      return metadata.to_text(entry);
  }
  engine::Blob blob;
  if (!engine::read_blob(entry.value, blob).empty()) {
    std::string hex;
    for (const auto byte : entry.value) hex += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
    return hex;
  }
  auto list = nlohmann::json::array();
  if (blob.kind == engine::BlobKind::kStrings) {
    const auto strings = *metadata.strings(entry.key);
    for (std::size_t i = 0; i < strings.size(); ++i) list.push_back(std::string(strings[i]));
  } else if (blob.kind == engine::BlobKind::kIntegers) {
    list = *metadata.integers(entry.key);
  } else {
    list = *metadata.floats(entry.key);
  }
  // Vocabularies may hold pieces of characters, which json cannot.
  return list.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void list(const Options& options) {
  const auto reader = engine::open_model(options.file);
  for (const auto& entry : reader->metadata().entries())
    std::cout << fmt::format("{}\t{}\t{}\n", printable(entry.key), engine::value_type_name(entry.type),
                             printable(reader->metadata().to_text(entry)));
}

void get(const Options& options) {
  const auto reader = engine::open_model(options.file);
  const auto* entry = reader->metadata().find(options.key);
  if (entry == nullptr) throw Error(fmt::format("{} has no metadata key {:?}", options.file, options.key));
  if (const auto problem = engine::value_problem(*entry); !problem.empty())
    throw Error(fmt::format("{}: metadata key {:?} holds {}", options.file, options.key, problem));
  std::cout << plain_text(reader->metadata(), *entry) << '\n';
}

void change(const Options& options, const MetadataChange& change) {
  for (const auto& remark : engine::edit_metadata(options.file, std::span(&change, 1)))
    std::cerr << "note: " << printable(remark) << '\n';
}

void set(const Options& options) {
  if (options.value.has_value() == !options.from.empty())
    throw Error("a value is needed: either as VALUE or as --from FILE", ErrorKind::kUsage);
  std::string text;
  if (options.value) {
    text = *options.value;
  } else {
    const engine::MappedFile file(options.from);
    text.assign(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  }
  const auto type = choose_type(options);
  change(options, {options.key, type, encode(type, text)});
}

}  // namespace

void add_metadata_command(CLI::App& app) {
  auto* command = app.add_subcommand("metadata", "List, read, set and remove metadata of a model file");
  command->require_subcommand(1);
  const auto options = std::make_shared<Options>();
  const auto add = [&](const char* name, const char* help, void (*run)(const Options&), bool with_key) {
    auto* sub = command->add_subcommand(name, help);
    sub->add_option("file", options->file, "A .hk file (list and get also take .gguf)")->required();
    if (with_key) sub->add_option("key", options->key, "The key, such as general.name")->required();
    sub->callback([options, run] { run(*options); });
    return sub;
  };
  add("list", "One line a key: key, type and value, separated by tabs", list, false);
  add("get", "Print one value: text as it is, arrays as json, bytes as hexadecimal digits", get, true);
  auto* set_command = add("set", "Set a key; the file keeps the old value until the new one is complete", set, true);
  set_command->add_option("value", options->value, "The value; after -- when it begins with a dash");
  set_command->add_option("--from", options->from, "Take the value from this file");
  set_command->add_option("--type", options->type, "Type of the value [that of the old value, else string]")
      ->check(CLI::IsMember({"string", "int", "float", "bool", "json", "bytes"}));
  add(
      "remove", "Remove a key",
      [](const Options& o) {
        change(o, {o.key, std::nullopt, {}});
      },
      true);
}

}  // namespace hk::cli
