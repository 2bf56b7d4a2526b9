// Lookups in tables of kEntries words: both 16-bit halves of every lane are an index and become the entry.
//
// Part of the level sources (see vec.h). lookup_ahead() takes all vectors of a super-block, lookup_words() one of them
// when it is used: a level does it in the one or in the other.
#pragma once

#include "kernels/isa/vec.h"

namespace hk::kernels {
namespace {

#if defined(HK_ISA_AVX512)
inline constexpr int kMaxPermuted = 1024;
/// The entries of 64 * kBlocks words from `table` on, for indices whose higher bits are taken care of by the caller:
/// one permutation looks 32 indices up in 64 words, and bit 6 + k of the index, `bits[k]`, chooses between the halves
/// of 128 << k words. All vectors meet a part of the table together, so that it is loaded once.
template <int kBlocks, int kLevels, int kCount>
HK_INLINE void lookup_blocks(const std::uint16_t* table, const __m512i (&indices)[kCount],
                             const __mmask32 (&bits)[kLevels][kCount], __m512i (&words)[kCount]) {
  if constexpr (kBlocks == 1) {
    const __m512i low = _mm512_load_si512(table), high = _mm512_load_si512(table + 32);
    for (int i = 0; i < kCount; ++i) words[i] = _mm512_permutex2var_epi16(low, indices[i], high);
  } else {
    constexpr int kLevel = __builtin_ctz(kBlocks) - 1;
    __m512i low[kCount], high[kCount];
    lookup_blocks<kBlocks / 2>(table, indices, bits, low);
    lookup_blocks<kBlocks / 2>(table + 32 * kBlocks, indices, bits, high);
    for (int i = 0; i < kCount; ++i) words[i] = _mm512_mask_blend_epi16(bits[kLevel][i], low[i], high[i]);
  }
}
/// One index after the other, through memory.
template <int kVectors>
HK_INLINE void lookup_one_by_one(const std::uint16_t* table, vi (&vectors)[kVectors]) {
  typedef std::uint16_t word __attribute__((may_alias));
  word* words = reinterpret_cast<word*>(vectors);
  asm volatile("" : "+r"(words), "+m"(vectors));
#pragma GCC unroll 1
  for (int k = 0; k < 2 * W * kVectors; k += 8) {
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
      word entry = table[words[k + j]];
      asm("" : "+r"(entry));  // no vector is put together from these
      words[k + j] = entry;
    }
  }
  asm volatile("" : "+m"(vectors));
}
template <int kEntries, int kVectors>
HK_INLINE void lookup_ahead(const std::uint16_t* table, vi (&vectors)[kVectors]) {
  if constexpr (kEntries <= kMaxPermuted) {
    // masks for two vectors and three levels of choices fit into the mask registers; larger tables go in parts
    constexpr int kPart = kEntries < 512 ? kEntries : 512, kLevels = __builtin_ctz(kPart) - 6;
    constexpr int kCount = kEntries <= 512 ? 4 : 2;
#pragma GCC unroll 1
    for (int first = 0; first < kVectors; first += kCount) {
      __m512i indices[kCount], words[kCount];
      __mmask32 bits[kLevels][kCount];
      for (int i = 0; i < kCount; ++i) {
        indices[i] = (__m512i)vectors[first + i];
        for (int k = 0; k < kLevels; ++k)
          bits[k][i] = _mm512_test_epi16_mask(indices[i], _mm512_set1_epi16(static_cast<short>(64 << k)));
      }
      lookup_blocks<kPart / 64>(table, indices, bits, words);
      __m512i number[kCount];
      for (int i = 0; i < kCount; ++i) number[i] = _mm512_srli_epi16(indices[i], 9);
#pragma GCC unroll 1
      for (int part = 1; part < kEntries / kPart; ++part) {
        __m512i found[kCount];
        lookup_blocks<kPart / 64>(table + part * kPart, indices, bits, found);
        for (int i = 0; i < kCount; ++i) {
          const __mmask32 here = _mm512_cmpeq_epi16_mask(number[i], _mm512_set1_epi16(static_cast<short>(part)));
          words[i] = _mm512_mask_blend_epi16(here, words[i], found[i]);
        }
      }
      for (int i = 0; i < kCount; ++i) vectors[first + i] = (vi)words[i];
    }
  } else {
    lookup_one_by_one(table, vectors);
  }
}
/// What lookup_ahead() has left to do.
template <int kEntries>
HK_INLINE vi lookup_words(const std::uint16_t*, const vi& vector) {
  return vector;
}
#else
template <int kEntries, int kVectors>
HK_INLINE void lookup_ahead(const std::uint16_t*, vi (&)[kVectors]) {}
template <int kEntries>
HK_INLINE vi lookup_words(const std::uint16_t* table, const vi& vector) {
  typedef std::uint16_t word __attribute__((may_alias));
  const word* index = reinterpret_cast<const word*>(&vector);
  asm("" : "+r"(index) : "m"(vector));
  vi16 found{};
  for (int k = 0; k < 2 * W; ++k) found[k] = static_cast<std::int16_t>(table[index[k]]);
  return reinterpret_cast<vi>(found);
}
#endif

}  // namespace
}  // namespace hk::kernels
