// Hash and open addressing (see id_table.h).
#include "cli/batch/id_table.h"

#include <utility>

#include "engine/generate/random.h"

namespace hk::cli {
namespace {

constexpr std::size_t kFirstSize = 1024;

}  // namespace

IdHash hash_id(std::string_view id) {
  __extension__ using Wide = unsigned __int128;
  constexpr Wide kOffset = (Wide{0x6c62272e07bb0142u} << 64) | 0x62b821756295c58du;
  constexpr Wide kPrime = (Wide{1} << 88) | 0x13bu;
  Wide hash = kOffset;
  for (const char c : id) {
    hash ^= static_cast<unsigned char>(c);
    hash *= kPrime;
  }
  const IdHash result{static_cast<std::uint64_t>(hash >> 64), static_cast<std::uint64_t>(hash)};
  return result == IdHash{} ? IdHash{0, 1} : result;
}

std::uint64_t shard_of(std::string_view id, std::uint64_t count) {
  const IdHash hash = hash_id(id);
  return (hash.high ^ hash.low) % count;
}

std::uint64_t seed_of(std::string_view id, std::uint64_t base) {
  const IdHash hash = hash_id(id);
  return engine::RandomStream(engine::RandomStream(base).next() ^ hash.high ^ hash.low).next();
}

IdTable::IdTable() : entries_(kFirstSize) {}

/// Where the hash is, or where it would be put.
std::size_t IdTable::place(const IdHash& hash) const {
  const std::size_t mask = entries_.size() - 1;
  std::size_t at = static_cast<std::size_t>(hash.high ^ hash.low) & mask;
  while (entries_[at].hash != IdHash{} && entries_[at].hash != hash) at = (at + 1) & mask;
  return at;
}

std::uint64_t& IdTable::operator[](std::string_view id) {
  const IdHash hash = hash_id(id);
  std::size_t at = place(hash);
  if (entries_[at].hash == IdHash{}) {
    if ((size_ + 1) * 4 > entries_.size() * 3) {
      grow();
      at = place(hash);
    }
    entries_[at].hash = hash;
    ++size_;
  }
  return entries_[at].value;
}

std::uint64_t IdTable::find(std::string_view id) const { return entries_[place(hash_id(id))].value; }

void IdTable::grow() {
  std::vector<Entry> old(entries_.size() * 2);
  old.swap(entries_);
  for (const Entry& entry : old)
    if (entry.hash != IdHash{}) entries_[place(entry.hash)] = entry;
}

}  // namespace hk::cli
