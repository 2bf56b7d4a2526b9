// A GGUF model: one file, or the members of a set of splits put together.
#include "engine/container/gguf_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/error.h"
#include "engine/container/gguf_file.h"

namespace hk::engine {
namespace {

constexpr std::string_view kSplitKeys = "split.";

/// The place of a file in its set, by name: STEM-00002-of-00003.gguf.
struct SplitName {
  std::string stem;         ///< with its folder
  std::uint32_t index = 0;  ///< 0-based
  std::uint32_t count = 0;

  static std::string member(const std::string& stem, std::uint32_t index, std::uint32_t count) {
    return fmt::format("{}-{:05}-of-{:05}.gguf", stem, index + 1, count);
  }
};

std::optional<std::uint32_t> five_digits(std::string_view text) {
  std::uint32_t value = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '9') return std::nullopt;
    value = value * 10 + static_cast<std::uint32_t>(digit - '0');
  }
  return value;
}

std::optional<SplitName> parse_split_name(std::string_view path) {
  constexpr std::string_view kPattern = "-00001-of-00001.gguf";
  if (path.size() <= kPattern.size()) return std::nullopt;
  const auto tail = path.substr(path.size() - kPattern.size());
  if (tail[0] != '-' || tail.substr(6, 4) != "-of-" || tail.substr(15) != ".gguf") return std::nullopt;
  const auto number = five_digits(tail.substr(1, 5));
  const auto count = five_digits(tail.substr(10, 5));
  if (!number || !count || *number == 0 || *number > *count) return std::nullopt;
  return SplitName{std::string(path.substr(0, path.size() - kPattern.size())), *number - 1, *count};
}

/// split.no and split.count of one file; nothing when it is a whole model.
struct SplitKeys {
  std::int64_t index = 0;
  std::int64_t count = 0;
};

std::optional<SplitKeys> split_keys(const Metadata& metadata, const std::string& file) {
  const auto count = metadata.integer("split.count");
  if (!count || *count == 0 || *count == 1) return std::nullopt;  // 0 is what a merged model says
  const auto index = metadata.integer("split.no");
  if (!index) throw Error(fmt::format("{}: split.count is {}, but the key split.no is missing", file, *count));
  if (*count < 0 || *count > 99999 || *index < 0 || *index >= *count)
    throw Error(fmt::format("{}: split.no is {} and split.count {}; a number from 0 below the count was expected", file,
                            *index, *count));
  return SplitKeys{*index, *count};
}

std::string file_name(const std::string& path) { return std::filesystem::path(path).filename().string(); }

}  // namespace

GgufReader::GgufReader(const std::string& path) : path_(path) {
  files_.push_back(std::make_unique<MappedFile>(path));
  auto first = parse_gguf(*files_[0], 0);
  const auto keys = split_keys(first.metadata, path);
  if (keys) {
    open_splits(static_cast<std::uint32_t>(keys->index), static_cast<std::uint32_t>(keys->count));
  } else {
    if (const auto name = parse_split_name(path); name && name->count > 1)
      remarks_.push_back(
          fmt::format("{} is named as one of {} splits but has no split keys; it is read as a whole model",
                      file_name(path), name->count));
    version_ = first.version;
    alignment_ = first.alignment;
    metadata_ = std::move(first.metadata);
    tensors_ = std::move(first.tensors);
    // Padding of the last payload is usual; more than that is worth a word.
    const auto size = files_[0]->bytes().size();
    if (size > first.data_end && size - first.data_end >= std::max<std::uint64_t>(alignment_, 4096))
      remarks_.push_back(fmt::format("{} bytes after the last tensor are ignored", size - first.data_end));
  }
  index_tensors();
}

void GgufReader::open_splits(std::uint32_t index, std::uint32_t count) {
  const auto name = parse_split_name(path_);
  if (!name || name->index != index || name->count != count)
    throw Error(fmt::format("{} is split {} of {} of a model; it must be named ...{} for the others to be found", path_,
                            index + 1, count, SplitName::member("", index, count)));
  auto given = std::move(files_[0]);
  files_.clear();
  std::int64_t expected_tensors = -1;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto member = SplitName::member(name->stem, i, count);
    if (i == index) {
      files_.push_back(std::move(given));
    } else {
      std::error_code ignored;
      if (!std::filesystem::exists(member, ignored))
        throw Error(fmt::format("{}: split {} of {} is missing: {} was expected beside {}", path_, i + 1, count,
                                file_name(member), file_name(path_)));
      files_.push_back(std::make_unique<MappedFile>(member));
    }
    auto part = parse_gguf(*files_.back(), i);
    const auto keys = split_keys(part.metadata, member);
    if (!keys || keys->index != i || keys->count != count)
      throw Error(fmt::format("{}: split.no {} and split.count {} were expected, {} found", member, i, count,
                              keys ? fmt::format("{} and {}", keys->index, keys->count) : "none"));
    if (i == 0) {
      version_ = part.version;
      alignment_ = part.alignment;
      expected_tensors = part.metadata.integer("split.tensors.count").value_or(-1);
    } else {
      const auto entries = part.metadata.entries();
      const auto extra = std::count_if(entries.begin(), entries.end(), [&](const MetadataEntry& entry) {
        return !entry.key.starts_with(kSplitKeys) && !metadata_.contains(entry.key);
      });
      if (extra != 0)
        remarks_.push_back(
            fmt::format("{} metadata keys that only {} has are ignored; a set is described by its first file", extra,
                        file_name(member)));
    }
    if (i == 0) metadata_ = std::move(part.metadata);
    std::move(part.tensors.begin(), part.tensors.end(), std::back_inserter(tensors_));
  }
  if (expected_tensors >= 0 && static_cast<std::uint64_t>(expected_tensors) != tensors_.size())
    throw Error(fmt::format("{}: split.tensors.count is {}, but the {} splits hold {} tensors", path_, expected_tensors,
                            count, tensors_.size()));
}

std::uint64_t GgufReader::mapped_bytes() const {
  std::uint64_t total = 0;
  for (const auto& file : files_) total += file->bytes().size();
  return total;
}

std::vector<MappedFile*> GgufReader::mapped_files() {
  std::vector<MappedFile*> mappings;
  for (const auto& file : files_) mappings.push_back(file.get());
  return mappings;
}

std::unique_ptr<ModelReader> open_gguf(const std::string& path) { return std::make_unique<GgufReader>(path); }

}  // namespace hk::engine
