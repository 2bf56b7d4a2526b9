// Appendix records: names, hashes, reading in place and the lineage check.
#include "engine/container/appendix.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "engine/container/hk_header.h"
#include "engine/container/metadata_blob.h"

namespace hk::engine {
namespace {

constexpr std::string_view kTypeNames[] = {"lora_adapter", "delta_patch",   "new_layer",
                                           "code_eval",    "kv_cache_sink", "topology_head"};

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

}  // namespace

std::string_view appendix_type_name(AppendixType type) {
  const auto index = static_cast<std::size_t>(type) - 1;  // 0 wraps to a large one
  return index < std::size(kTypeNames) ? kTypeNames[index] : "unknown type";
}

bool find_appendix_type(std::string_view name, AppendixType& type) {
  const auto* at = std::find(std::begin(kTypeNames), std::end(kTypeNames), name);
  if (at == std::end(kTypeNames)) return false;
  type = static_cast<AppendixType>(at - std::begin(kTypeNames) + 1);
  return true;
}

Sha256 sha256(std::initializer_list<std::span<const std::byte>> parts) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  Sha256 digest = {};
  bool ok = context != nullptr && EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1;
  for (const auto& part : parts) ok = ok && EVP_DigestUpdate(context.get(), part.data(), part.size()) == 1;
  ok = ok && EVP_DigestFinal_ex(context.get(), reinterpret_cast<unsigned char*>(digest.data()), nullptr) == 1;
  if (!ok) throw Error("libcrypto cannot compute a SHA-256", ErrorKind::kResource);
  return digest;
}

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const auto byte : bytes) text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  return text;
}

Sha256 AppendixRecord::lineage_hash() const { return sha256({bytes_of(name), bytes_of(target), data}); }

Appendix read_appendix(std::span<const std::byte> file, std::uint64_t offset) {
  Appendix appendix;
  if (offset == 0) return appendix;
  if (offset < kHkHeaderBytes || offset > file.size()) {
    appendix.problem =
        fmt::format("the appendix offset {} lies outside the file's {} bytes or in its header", offset, file.size());
    return appendix;
  }
  while (offset < file.size()) {
    const auto rest = file.subspan(offset);
    const auto where = [&] { return fmt::format("appendix record {} at {}", appendix.records.size() + 1, offset); };
    if (rest.size() < kAppendixHeaderBytes) {
      appendix.problem = fmt::format("{} is cut off: {} bytes are left, its header alone has {}", where(), rest.size(),
                                     kAppendixHeaderBytes);
      break;
    }
    const std::byte* at = rest.data();
    AppendixRecord record;
    record.offset = offset;
    record.type = static_cast<AppendixType>(std::to_integer<std::uint8_t>(at[0]));
    record.flags = std::to_integer<std::uint8_t>(at[1]);
    const auto name_size = load_little_endian<std::uint16_t>(at + 2);
    record.generation = load_little_endian<std::uint32_t>(at + 4);
    record.timestamp = load_little_endian<std::uint64_t>(at + 8);
    std::memcpy(record.parent_hash.data(), at + 16, record.parent_hash.size());
    std::memcpy(record.metrics.data(), at + 48, sizeof(record.metrics));
    const auto target_size = load_little_endian<std::uint16_t>(at + 64);
    const auto data_size = load_little_endian<std::uint64_t>(at + 72);
    const std::uint64_t texts = std::uint64_t{name_size} + target_size;
    const std::uint64_t body = rest.size() - kAppendixHeaderBytes;
    if (texts > body || data_size > body - texts) {
      appendix.problem =
          fmt::format("{} is cut off: name, target and data have {}, {} and {} bytes, {} are left in the file", where(),
                      name_size, target_size, data_size, body);
      break;
    }
    const auto* text = reinterpret_cast<const char*>(at + kAppendixHeaderBytes);
    record.name = {text, name_size};
    record.target = {text + name_size, target_size};
    record.data = rest.subspan(kAppendixHeaderBytes + texts, data_size);
    appendix.records.push_back(record);
    const auto padded = (record.end() - offset + kAppendixAlignment - 1) / kAppendixAlignment * kAppendixAlignment;
    appendix.padding_missing = padded > rest.size();
    offset += std::min<std::uint64_t>(padded, rest.size());
  }
  return appendix;
}

std::vector<Link> check_lineage(const Appendix& appendix) {
  std::vector<Link> links;
  const AppendixRecord* parent = nullptr;
  for (const auto& record : appendix.records) {
    if (parent == nullptr) {
      links.push_back(Link::kFirst);
    } else if (record.parent_hash == parent->lineage_hash()) {
      links.push_back(Link::kValid);
    } else {
      links.push_back(record.parent_hash == sha256({parent->data}) ? Link::kOld : Link::kBroken);
    }
    parent = &record;
  }
  return links;
}

std::vector<std::string> appendix_problems(const Appendix& appendix) {
  std::vector<std::string> problems;
  const auto links = check_lineage(appendix);
  for (std::size_t i = 0; i < links.size(); ++i) {
    const auto& record = appendix.records[i];
    if (appendix_type_name(record.type) == "unknown type")
      problems.push_back(fmt::format("appendix record {} ({:?}) is of unknown type 0x{:02x}", i + 1, record.name,
                                     static_cast<unsigned>(record.type)));
    if (links[i] == Link::kBroken)
      problems.push_back(
          fmt::format("the lineage is broken: the parent hash of appendix record {} ({:?}) does not fit record "
                      "{} ({:?})",
                      i + 1, record.name, i, appendix.records[i - 1].name));
  }
  if (appendix.padding_missing)
    problems.push_back(
        fmt::format("the padding of the last appendix record ({:?}) is cut off", appendix.records.back().name));
  if (!appendix.problem.empty()) problems.push_back(appendix.problem);
  return problems;
}

}  // namespace hk::engine
