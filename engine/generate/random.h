// The random numbers of sampling: number n of a seed is a hash of (seed, n), so a stream can be repeated anywhere.
//
// Layer: engine/generate. SplitMix64 (Steele, Lea, Flood 2014): a counter advanced by an odd constant and mixed by two
// multiply-xor-shift rounds; passes BigCrush, has no state besides the counter, and is the same on every platform,
// which the standard library's distributions are not.
#pragma once

#include <cstdint>

namespace hk::engine {

class RandomStream {
 public:
  explicit RandomStream(std::uint64_t seed) : counter_(seed) {}

  std::uint64_t next() {
    counter_ += 0x9e3779b97f4a7c15u;  // 2^64 / golden ratio
    std::uint64_t mixed = counter_;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return mixed ^ (mixed >> 31);
  }
  /// In [0, 1), 53 random bits.
  double next_unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  std::uint64_t counter_;
};

}  // namespace hk::engine
