// The appendix of a .hk file: records behind the model that tell its lineage.
//
// Layer: engine/container. HK-FORMAT.md section 8. Reading is done in place on a mapping; changing keeps this promise:
// a kill or a full disk at any point leaves the appendix as it was or as it was to become.
//
// How: records are visible from the header's offset to the end of the file, so growing the file is what publishes a
// record. The first record is written behind the file's end and published by one write of the header. A later record
// that lies within one page of the file is published by a single write, which no signal can split. A longer one is
// written to a copy of the file that then replaces it (a reflink where the file system has them). Rolling back cuts the
// file at a record.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hk::engine {

inline constexpr std::size_t kAppendixHeaderBytes = 80;
inline constexpr std::size_t kAppendixAlignment = 8;

enum class AppendixType : std::uint8_t {
  kLoraAdapter = 1,
  kDeltaPatch = 2,
  kNewLayer = 3,
  kCodeEval = 4,
  kKvCacheSink = 5,
  kTopologyHead = 6,
};
/// As in HK-FORMAT.md: "lora_adapter"; "unknown type" for others.
std::string_view appendix_type_name(AppendixType type);
/// The type of a name; false when there is none.
bool find_appendix_type(std::string_view name, AppendixType& type);

inline constexpr std::uint8_t kAppendixActive = 1;
inline constexpr std::uint8_t kAppendixCompressed = 2;

using Sha256 = std::array<std::byte, 32>;
Sha256 sha256(std::initializer_list<std::span<const std::byte>> parts);
std::string hex(std::span<const std::byte> bytes);

/// One record in the mapping.
struct AppendixRecord {
  std::uint64_t offset = 0;  ///< of the record in the file
  AppendixType type = AppendixType::kLoraAdapter;
  std::uint8_t flags = 0;
  std::uint32_t generation = 0;
  std::uint64_t timestamp = 0;
  Sha256 parent_hash = {};
  std::array<float, 4> metrics = {};  ///< loss, acc, pass, custom
  std::string_view name;
  std::string_view target;
  std::span<const std::byte> data;

  std::uint64_t end() const { return offset + kAppendixHeaderBytes + name.size() + target.size() + data.size(); }
  Sha256 lineage_hash() const;  ///< of name, target and data: what the next record's parent_hash should be
};

struct Appendix {
  std::vector<AppendixRecord> records;  ///< complete ones, in file order
  /// "" when the region consists of records alone; else what is wrong behind the last complete one, and where.
  std::string problem;
  /// The last record's data are complete, but not its padding: cut off by a few bytes, or written by a tool that pads
  /// before the next record only.
  bool padding_missing = false;
};

/// Reads the records of a file whose header says they begin at `offset`. 0: there are none.
Appendix read_appendix(std::span<const std::byte> file, std::uint64_t offset);

/// One link of the chain: does a record's parent_hash fit the record before it?
enum class Link : std::uint8_t {
  kFirst,  ///< the first record's hash is not checked
  kValid,  ///< SHA-256 of name, target and data
  kOld,    ///< SHA-256 of the data alone, the older form
  kBroken,
};
std::vector<Link> check_lineage(const Appendix& appendix);

/// Everything wrong with an appendix, one clause each: damage, broken links, unknown types.
std::vector<std::string> appendix_problems(const Appendix& appendix);

struct NewRecord {
  AppendixType type = AppendixType::kLoraAdapter;
  std::uint8_t flags = kAppendixActive;
  std::uint32_t generation = 0;
  std::uint64_t timestamp = 0;  ///< seconds since 1970
  std::array<float, 4> metrics = {};
  std::string name = {};
  std::string target = {};
  std::span<const std::byte> data = {};
};

/// Appends a record, its parent_hash that of the last one (zeros for the first). Existing bytes do not move. Refuses a
/// file whose appendix is damaged or whose header points tables or payloads behind the appendix. Throws hk::Error.
void append_record(const std::string& path, const NewRecord& record);

/// Drops the records of a higher generation; returns how many. They must be the last ones: a kept record behind a
/// dropped one would lose its parent, which is refused. A damaged tail behind the last complete record is dropped as
/// well.
std::size_t roll_back(const std::string& path, std::uint32_t generation);

}  // namespace hk::engine
