// The fixed 128-byte header of a .hk file: fields, flags, and their bytes.
//
// Layer: engine/container. HK-FORMAT.md section 2. Decoding checks only what makes it a header of this format; whether
// offsets fit the file is the reader's business.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace hk::engine {

inline constexpr std::size_t kHkHeaderBytes = 128;
inline constexpr std::array<char, 4> kHkMagic = {'H', 'K', 'N', 'T'};
inline constexpr std::uint16_t kHkVersionMajor = 1;

/// Bits of HkHeader::flags.
enum HkFlag : std::uint32_t {
  kHkLittleEndian = 1u << 0,
  kHkHasAppendix = 1u << 1,
  kHkHasQuantTable = 1u << 2,
  kHkSparsity2_4 = 1u << 3,
  kHkTileAligned = 1u << 4,
  kHkFlexibleAlignment = 1u << 5,
  kHkIsSharded = 1u << 6,
  kHkRawWeightStorage = 1u << 7,
  kHkPageAligned = 1u << 8,
};
inline constexpr std::uint32_t kHkKnownFlags = (1u << 9) - 1;

struct HkHeader {
  std::uint16_t version_major = kHkVersionMajor;
  std::uint16_t version_minor = 0;
  std::uint32_t flags = kHkLittleEndian;
  std::uint16_t alignment = 0;
  std::uint16_t split_index = 0;
  std::uint64_t tensor_count = 0;
  std::uint64_t metadata_kv_count = 0;
  std::uint64_t metadata_offset = 0;
  std::uint64_t metadata_size = 0;
  std::uint64_t tensor_toc_offset = 0;
  std::uint64_t tensor_toc_size = 0;
  std::uint64_t tensor_data_offset = 0;
  std::uint64_t appendix_offset = 0;
  std::uint64_t checksum = 0;
  std::uint16_t split_count = 1;
  std::array<std::byte, 38> reserved = {};

  /// Shards in the set; a stored 0 means 1.
  std::uint32_t shards() const { return split_count == 0 ? 1 : split_count; }
};

/// Throws hk::Error naming `file` when the bytes are no header of a version this program reads.
HkHeader decode_hk_header(std::span<const std::byte> file_bytes, const std::string& file);
std::array<std::byte, kHkHeaderBytes> encode_hk_header(const HkHeader& header);

/// Names of the set flags, comma separated: "LITTLE_ENDIAN, TILE_ALIGNED"; unknown bits as "bit 9".
std::string hk_flag_names(std::uint32_t flags);

}  // namespace hk::engine
