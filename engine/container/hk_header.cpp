// Header of a .hk file: bytes to fields and back.
#include "engine/container/hk_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "engine/container/metadata_blob.h"

namespace hk::engine {
namespace {

/// One table of the fields for both directions. `visit(offset, field)`.
template <typename Header, typename Visit>
void for_each_field(Header& header, Visit visit) {
  visit(0x04, header.version_major);
  visit(0x06, header.version_minor);
  visit(0x08, header.flags);
  visit(0x0C, header.alignment);
  visit(0x0E, header.split_index);
  visit(0x10, header.tensor_count);
  visit(0x18, header.metadata_kv_count);
  visit(0x20, header.metadata_offset);
  visit(0x28, header.metadata_size);
  visit(0x30, header.tensor_toc_offset);
  visit(0x38, header.tensor_toc_size);
  visit(0x40, header.tensor_data_offset);
  visit(0x48, header.appendix_offset);
  visit(0x50, header.checksum);
  visit(0x58, header.split_count);
  visit(0x5A, header.reserved);
}

constexpr std::string_view kFlagNames[] = {
    "LITTLE_ENDIAN",      "HAS_APPENDIX", "HAS_QUANT_TABLE",    "SPARSITY_2_4",           "TILE_ALIGNED",
    "FLEXIBLE_ALIGNMENT", "IS_SHARDED",   "RAW_WEIGHT_STORAGE", "UNIVERSAL_PAGE_ALIGNED",
};

}  // namespace

HkHeader decode_hk_header(std::span<const std::byte> file_bytes, const std::string& file) {
  if (file_bytes.empty()) throw Error(fmt::format("{} is empty; a .hk file was expected", file));
  const auto magic_bytes = std::min(file_bytes.size(), kHkMagic.size());
  const std::string_view magic(reinterpret_cast<const char*>(file_bytes.data()), magic_bytes);
  if (magic != std::string_view(kHkMagic.data(), kHkMagic.size()))
    throw Error(fmt::format("{} is no .hk file: it begins with {:?}, \"HKNT\" was expected", file, magic));
  if (file_bytes.size() < kHkHeaderBytes)
    throw Error(fmt::format("{} is cut off: it has {} bytes, the header alone has {}", file, file_bytes.size(),
                            kHkHeaderBytes));
  HkHeader header;
  for_each_field(
      header, [&](std::size_t offset, auto& field) { std::memcpy(&field, file_bytes.data() + offset, sizeof(field)); });
  if (header.version_major != kHkVersionMajor)
    throw Error(fmt::format("{} is of .hk version {}.{}; this program reads version {}", file, header.version_major,
                            header.version_minor, kHkVersionMajor));
  return header;
}

std::array<std::byte, kHkHeaderBytes> encode_hk_header(const HkHeader& header) {
  std::array<std::byte, kHkHeaderBytes> bytes = {};
  std::memcpy(bytes.data(), kHkMagic.data(), kHkMagic.size());
  for_each_field(header, [&](std::size_t offset, const auto& field) {
    std::memcpy(bytes.data() + offset, &field, sizeof(field));
  });
  return bytes;
}

std::string hk_flag_names(std::uint32_t flags) {
  std::string names;
  for (std::uint32_t bit = 0; bit < 32; ++bit) {
    if ((flags >> bit & 1u) == 0) continue;
    if (!names.empty()) names += ", ";
    names += bit < std::size(kFlagNames) ? std::string(kFlagNames[bit]) : fmt::format("bit {}", bit);
  }
  return names;
}

}  // namespace hk::engine
