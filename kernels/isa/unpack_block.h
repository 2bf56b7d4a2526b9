// Unpackers of the Block32 family: 32 elements with a float scale (and a float minimum) a row, W rows at a time.
//
// Part of the level sources (see vec.h). The packed bytes of W rows are transposed first, so that a word (lane r holds
// a dword of row r) of all rows is one vector, and only then taken apart: every shift and mask works on W rows at once
// and serves any number of activations. "Step" u holds elements 4u..4u+3 of each row as four bytes, with kBias added
// (so that most are unsigned and small; kWide marks those that need the whole int8 range, see vec.h). Blocks need not
// begin with a word: kPhases runs of 32 elements together do, and kPhaseWords is what they take. Layouts: QUANTS.md
// section 4.
#pragma once

#include "kernels/isa/vec.h"
#include "kernels/quant/codebooks.h"

namespace hk::kernels {
namespace {

inline constexpr std::int32_t kLowNibbles = 0x0F0F0F0F;

/// The word that begins kBytes bytes behind the beginning of `low` when `high` follows.
template <int kBytes>
HK_INLINE vi straddle(vi low, vi high) {
  if constexpr (kBytes == 0) {
    return low;
  } else if constexpr (kBytes == 2) {
    return straddle_words(low, high);
  } else {
    return shr(low, 8 * kBytes) | (high << (32 - 8 * kBytes));
  }
}
/// kCount words from byte kFirst of `words` on.
template <int kFirst, int kCount>
HK_INLINE void take_words(const vi* words, vi* out) {
  for (int j = 0; j < kCount; ++j)
    out[j] = straddle<kFirst % 4>(words[kFirst / 4 + j], words[kFirst / 4 + j + (kFirst % 4 != 0)]);
}
/// Sixteen bytes a row with element j in the low nibble of byte j and element j + 16 in the high one.
template <int kFirst>
HK_INLINE void unpack_nibbles(const vi* words, vi* steps) {
  vi packed[4];
  take_words<kFirst, 4>(words, packed);
  for (int j = 0; j < 4; ++j) {
    steps[j] = packed[j] & kLowNibbles;
    steps[4 + j] = shr(packed[j], 4) & kLowNibbles;
  }
}
/// The binary16 at byte kAt, which is even.
template <int kAt>
HK_INLINE vf half_at(const vi* words) {
  return kAt % 4 == 0 ? half_low(words[kAt / 4]) : half_high(words[kAt / 4]);
}

/// The fifth bit of q5_0 and q5_1: bit 4u + k of `bits` becomes bit 4 of byte k of step u.
HK_INLINE void add_fifth_bits(vi bits, vi* steps) {
  for (int u = 0; u < 8; ++u) steps[u] |= ((shr(bits, 4 * u) & 0xF) * 0x02040810) & 0x10101010;
}

struct BlockFormat {
  static constexpr bool kWide = false;
  static constexpr bool kHasMin = false;
  static constexpr int kScales = 1;  ///< scales in 32 elements
};

/// 128 elements, a bit each: +d for 1, -d for 0.
struct Q1_0 : BlockFormat {
  static constexpr int kPhases = 8, kPhaseWords = 9;
  static constexpr int kBias = 1;
  template <int kPhase>
  static HK_INLINE void unpack(const vi* words, vi* steps, vf* scale, vf*) {
    constexpr int kBlock = kPhase / 4 * 18;
    vi bits;
    take_words<kBlock + 2 + kPhase % 4 * 4, 1>(words, &bits);
    for (int u = 0; u < 8; ++u) steps[u] = ((shr(bits, 4 * u) & 0xF) * 0x00408102) & 0x02020202;
    *scale = half_at<kBlock>(words);
  }
};

/// 64 elements of two bits: (code - 1) * d.
struct Q2_0 : BlockFormat {
  static constexpr int kPhases = 4, kPhaseWords = 9;
  static constexpr int kBias = 1;
  template <int kPhase>
  static HK_INLINE void unpack(const vi* words, vi* steps, vf* scale, vf*) {
    constexpr int kBlock = kPhase / 2 * 18;
    vi codes[2];
    take_words<kBlock + 2 + kPhase % 2 * 8, 2>(words, codes);
    for (int u = 0; u < 8; ++u) {
      const vi byte = shr(codes[u / 4], 8 * (u % 4)) & 0xFF;
      steps[u] = (byte | (byte << 6) | (byte << 12) | (byte << 18)) & 0x03030303;
    }
    *scale = half_at<kBlock>(words);
  }
};

struct Q4_0 : BlockFormat {
  static constexpr int kPhases = 2, kPhaseWords = 9;
  static constexpr int kBias = 8;
  template <int kPhase>
  static HK_INLINE void unpack(const vi* words, vi* steps, vf* scale, vf*) {
    unpack_nibbles<18 * kPhase + 2>(words, steps);
    *scale = half_at<18 * kPhase>(words);
  }
};

struct Q4_1 : BlockFormat {
  static constexpr int kPhases = 1, kPhaseWords = 5;
  static constexpr int kBias = 0;
  static constexpr bool kHasMin = true;
  template <int>
  static HK_INLINE void unpack(const vi* words, vi* steps, vf* scale, vf* min) {
    unpack_nibbles<4>(words, steps);
    split_halves(words[0], scale, min);
  }
};

struct Q5_0 : BlockFormat {
  static constexpr int kPhases = 2, kPhaseWords = 11;
  static constexpr int kBias = 16;
  template <int kPhase>
  static HK_INLINE void unpack(const vi* words, vi* steps, vf* scale, vf*) {
    vi bits;
    take_words<22 * kPhase + 2, 1>(words, &bits);
    unpack_nibbles<22 * kPhase + 6>(words, steps);
    add_fifth_bits(bits, steps);
    *scale = half_at<22 * kPhase>(words);
  }
};

struct Q5_1 : BlockFormat {
  static constexpr int kPhases = 1, kPhaseWords = 6;
  static constexpr int kBias = 0;
  static constexpr bool kHasMin = true;
  template <int>
  static HK_INLINE void unpack(const vi* words, vi* steps, vf* scale, vf* min) {
    unpack_nibbles<8>(words, steps);
    add_fifth_bits(words[1], steps);
    split_halves(words[0], scale, min);
  }
};

struct Q8_0 : BlockFormat {
  static constexpr int kPhases = 2, kPhaseWords = 17;
  static constexpr int kBias = kWideBias;
  static constexpr bool kWide = true;
  template <int kPhase>
  static HK_INLINE void unpack(const vi* words, vi* steps, vf* scale, vf*) {
    take_words<34 * kPhase + 2, 8>(words, steps);
    for (int u = 0; u < 8; ++u) steps[u] = wide(steps[u]);
    *scale = half_at<34 * kPhase>(words);
  }
};

struct IQ4_NL : BlockFormat {
  static constexpr int kPhases = 2, kPhaseWords = 9;
  static constexpr int kBias = kWideBias;
  static constexpr bool kWide = true;
  template <int kPhase>
  static HK_INLINE void unpack(const vi* words, vi* steps, vf* scale, vf*) {
    unpack_nibbles<18 * kPhase + 2>(words, steps);
    for (int u = 0; u < 8; ++u) steps[u] = wide(lookup16(kIQ4NLValues, steps[u]));
    *scale = half_at<18 * kPhase>(words);
  }
};

/// Doubled E2M1 values plus 12, so that they are unsigned.
inline constexpr int kE2M1Bias = 12;
alignas(16) constexpr std::int8_t kE2M1Biased[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};

struct MXFP4 : BlockFormat {
  static constexpr int kPhases = 4, kPhaseWords = 17;
  static constexpr int kBias = kE2M1Bias;
  template <int kPhase>
  static HK_INLINE void unpack(const vi* words, vi* steps, vf* scale, vf*) {
    unpack_nibbles<17 * kPhase + 1>(words, steps);
    for (int u = 0; u < 8; ++u) steps[u] = lookup16(kE2M1Biased, steps[u]);
    const vi e = shr(words[17 * kPhase / 4], 8 * (17 * kPhase % 4)) & 0xFF;
    // 2^(e - 128): subnormal for e = 0 and 1
    const vi small = e < 2;
    *scale = as_f((small & (0x00200000 << e)) | (~small & ((e - 1) << 23)));
  }
};

/// A block of 64 elements has two phases.
struct NVFP4 : BlockFormat {
  static constexpr int kPhases = 2, kPhaseWords = 9;
  static constexpr int kScales = 2;
  static constexpr int kBias = kE2M1Bias;
  /// Unsigned E4M3, halved (QUANTS.md 4.27).
  static HK_INLINE vf scale_of(vi u) {
    const vi exponent = shr(u, 3) & 15, mantissa = u & 7;
    const vf normal = as_f(((exponent + 119) << 23) | (mantissa << 20));
    const vf subnormal = to_float(mantissa) * 0x1p-10f;
    return select(u == 0x7F, vf{}, select(exponent == 0, subnormal, normal));
  }
  template <int kPhase>
  static HK_INLINE void unpack(const vi* words, vi* steps, vf* scale, vf*) {
    const vi* packed = words + 1 + 4 * kPhase;
    for (int half = 0; half < 2; ++half) {
      for (int j = 0; j < 2; ++j) {
        steps[4 * half + j] = lookup16(kE2M1Biased, packed[2 * half + j] & kLowNibbles);
        steps[4 * half + 2 + j] = lookup16(kE2M1Biased, shr(packed[2 * half + j], 4) & kLowNibbles);
      }
      scale[half] = scale_of(shr(words[0], 16 * kPhase + 8 * half) & 0xFF);
    }
  }
};

}  // namespace
}  // namespace hk::kernels
