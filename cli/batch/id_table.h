// Ids of requests: which machine takes which, and a table of millions of them in little memory.
//
// Layer: cli/batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace hk::cli {

/// 128 bits that stand for an id: FNV-1a, a published function, the same on every machine and for ever. Two ids of a
/// file of a thousand million have the same with a chance of 1 in 10^21.
struct IdHash {
  std::uint64_t high = 0, low = 0;
  bool operator==(const IdHash&) const = default;
};
IdHash hash_id(std::string_view id);

/// Which of `count` shards (0 to count - 1) a request belongs to: both halves of the hash joined by exclusive or,
/// modulo `count`.
std::uint64_t shard_of(std::string_view id, std::uint64_t count);
/// Seed of a request that names none: depends on its id and the seed of the whole run, on nothing else.
std::uint64_t seed_of(std::string_view id, std::uint64_t base);

/// From ids to numbers: 24 bytes an id and some room between.
class IdTable {
 public:
  IdTable();
  /// The number of `id`, 0 when it is new.
  std::uint64_t& operator[](std::string_view id);
  std::uint64_t find(std::string_view id) const;  ///< 0 when it is not there
  std::size_t size() const { return size_; }

 private:
  struct Entry {
    IdHash hash;  // {0, 0}: free
    std::uint64_t value = 0;
  };
  std::size_t place(const IdHash& hash) const;
  void grow();

  std::vector<Entry> entries_;  // a power of two of them
  std::size_t size_ = 0;
};

}  // namespace hk::cli
