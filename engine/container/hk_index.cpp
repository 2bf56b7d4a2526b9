// Shard names and the index json of a set.
#include "engine/container/hk_index.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "engine/container/atomic_file.h"
#include "engine/container/mapped_file.h"
#include "engine/container/metadata_json.h"

namespace hk::engine {

std::string hk_shard_name(std::string_view stem, std::uint32_t index, std::uint32_t count) {
  return fmt::format("{}-{:05}-of-{:05}.hk", stem, index + 1, count);
}

std::optional<std::string> hk_shard_stem(std::string_view name, std::uint32_t index, std::uint32_t count) {
  const auto tail = hk_shard_name("", index, count);
  if (!name.ends_with(tail)) return std::nullopt;
  return std::string(name.substr(0, name.size() - tail.size()));
}

bool is_hk_index(const std::string& path) {
  // MappedFile refuses pipes and folders; whatever is wrong is told when the file is opened as a model.
  try {
    const MappedFile file(path);
    const auto bytes = file.bytes();
    return !bytes.empty() && static_cast<char>(bytes[0]) == '{';
  } catch (const Error&) {
    return false;
  }
}

HkIndex read_hk_index(const std::string& path) {
  const MappedFile file(path);
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  const auto refuse = [&](const std::string& why) {
    throw Error(fmt::format("{} is no index of a .hk model: {}", path, why));
  };
  if (const auto problem = check_json(text); !problem.empty()) refuse(problem);
  const auto json = nlohmann::json::parse(text);
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object())
    refuse("an object with a member \"weight_map\" {tensor: file} was expected");
  HkIndex index;
  std::set<std::string> files;
  for (const auto& [tensor, member] : json["weight_map"].items()) {
    if (!member.is_string()) refuse(fmt::format("the file of tensor {:?} is no string", tensor));
    const auto name = member.get<std::string>();
    // Members lie beside the index; a path would let a downloaded index point anywhere.
    if (name.empty() || name == "." || name == ".." || name.find('/') != name.npos || name.find('\0') != name.npos)
      refuse(fmt::format("the file of tensor {:?} is {:?}; a name without folder was expected", tensor, name));
    files.insert(name);
    index.tensors.emplace(tensor, name);
  }
  if (files.empty()) refuse("its \"weight_map\" is empty");
  index.files.assign(files.begin(), files.end());
  return index;
}

void write_hk_index(const std::string& path, std::span<const std::pair<std::string, std::string>> tensor_files) {
  nlohmann::ordered_json map = nlohmann::ordered_json::object();
  // Names are unique already, and looking for duplicates would cost a scan of the ordered object each time.
  auto& members = map.get_ref<nlohmann::ordered_json::object_t&>();
  members.reserve(tensor_files.size());
  for (const auto& [tensor, file] : tensor_files) members.emplace_back(tensor, file);
  nlohmann::ordered_json index;
  index["weight_map"] = std::move(map);
  const auto text = index.dump(1) + "\n";
  AtomicFile file(path);
  file.write(0, std::as_bytes(std::span(text)));
  file.sync();
  file.commit();
}

}  // namespace hk::engine
