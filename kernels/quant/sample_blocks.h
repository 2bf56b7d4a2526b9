// Made-up weights of any block format: random codes under scales of ordinary size, without a file or an encoder.
//
// Layer: kernels. For the self check and the benchmarks: every code occurs, no block outweighs the others (random scale
// bytes would span thirty powers of ten), nothing is infinite, subnormal or no number.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/quant/format.h"

namespace hk::kernels {

/// Random numbers that are the same everywhere: a 64-bit mixed counter (the constants are those of SplitMix64).
class SampleRandom {
 public:
  explicit SampleRandom(std::uint64_t seed) : state_(seed) {}
  std::uint64_t bits() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15U;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }
  /// Even in [low, high).
  float between(float low, float high) { return low + (high - low) * (static_cast<float>(bits() >> 40) * 0x1p-24F); }

 private:
  std::uint64_t state_;
};

/// Writes `blocks` blocks (elements for the dense types). False when the format is none that the kernels run.
bool fill_sample_blocks(const Format& format, void* out, std::size_t blocks, SampleRandom& random);

}  // namespace hk::kernels
