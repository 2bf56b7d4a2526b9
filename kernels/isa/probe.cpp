// Peak loops of one ISA level: what the roofline probe (engine/runtime/roofline.h) compares the kernels with.
//
// The arithmetic loops touch no memory: operands and accumulators stay in registers, so they show what the level's own
// primitives can do at most. The read loop does nothing but prefetch and load.
#include "kernels/isa/level.h"
#include "kernels/isa/vec.h"

namespace hk::kernels {
namespace {

// Independent sums. Two instructions a cycle with a latency of four or five cycles keep eight to ten of them busy;
// twelve, two operands and two temporaries still fit sixteen registers. The bf16 dot takes six cycles and is on levels
// with thirty-two registers only.
#if defined(HK_ISA_AVX512)
inline constexpr int kChains = 24;
#else
inline constexpr int kChains = 12;
#endif
// Places that are read side by side, and how far ahead of each lines are fetched. One stream from front to back waits
// for the memory at the beginning of every page: on a server CPU it reached 12 GB/s where eight got 14 to 15, as the
// kernels' row streams did.
inline constexpr std::size_t kStreams = 8, kLine = 64, kFetchAhead = 512;

/// Makes the compiler believe that the value may have changed: what depends on it is computed anew and not dropped.
template <typename V>
HK_INLINE void keep(V& v) {
  __asm__ volatile("" : HK_REGISTER(v));
}

/// `rounds` times kChains dependent steps acc = step(acc, w, s).
template <typename V, typename Step>
HK_INLINE void run_chains(std::uint64_t rounds, V w, V s, const Step& step) {
  V acc[kChains] = {};
  for (std::uint64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 24
    for (int c = 0; c < kChains; ++c) {
      keep(w);
      acc[c] = step(acc[c], w, s);
    }
  }
#pragma GCC unroll 24
  for (int c = 0; c < kChains; ++c) keep(acc[c]);
}

#if defined(HK_ISA_AVX512) && defined(HK_ISA_VNNI)
#define HK_PROBE_BF16
/// CPUs of this level may or may not have AVX512_BF16, so only this function is compiled for it.
__attribute__((target("avx512bf16"))) void bf16_chains(std::uint64_t rounds) {
  vi w = set_i(0x3F803F80);  // pairs of 1.0
  const vi s = set_i(0x3C003C00);
  __m512 acc[kChains] = {};
  for (std::uint64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 24
    for (int c = 0; c < kChains; ++c) {
      keep(w);
      acc[c] = _mm512_dpbf16_ps(acc[c], (__m512bh)w, (__m512bh)s);
    }
  }
#pragma GCC unroll 24
  for (int c = 0; c < kChains; ++c) keep(acc[c]);
}
#endif

}  // namespace

namespace HK_LEVEL {

std::uint64_t probe_int8_dot(std::uint64_t rounds) {
  run_chains<vi>(rounds, set_i(0x01020304), set_i(0x05FB07F9),
                 [](vi acc, vi w, vi s) HK_LAMBDA_INLINE { return dot_u8s8(acc, w, s); });
  return rounds * kChains * 4 * W;
}

std::uint64_t probe_f32_fma(std::uint64_t rounds) {
  // small products: the sums stay finite however long it runs
  run_chains<vf>(rounds, set_f(0.5f), set_f(1e-6f), [](vf acc, vf w, vf s) HK_LAMBDA_INLINE { return fma(w, s, acc); });
  return rounds * kChains * W;
}

std::uint64_t probe_bf16_dot([[maybe_unused]] std::uint64_t rounds) {
#if defined(HK_PROBE_BF16)
  if (!__builtin_cpu_supports("avx512bf16")) return 0;
  bf16_chains(rounds);
  return rounds * kChains * 2 * W;
#else
  return 0;
#endif
}

std::uint32_t probe_read(const void* data, std::size_t bytes) {
  const auto* p = static_cast<const std::uint8_t*>(data);
  const std::size_t stretch = bytes / kStreams / kLine * kLine;
  vi acc[kStreams] = {};
  for (std::size_t i = 0; i < stretch; i += kLine) {
#pragma GCC unroll 8
    for (std::size_t s = 0; s < kStreams; ++s) {
      const std::uint8_t* line = p + s * stretch + i;
      __builtin_prefetch(line + kFetchAhead);
#pragma GCC unroll 4
      for (std::size_t k = 0; k < kLine; k += 4 * W) acc[s] ^= load_i(line + k);
    }
  }
  for (std::size_t i = kStreams * stretch; i + 4 * W <= bytes; i += 4 * W) acc[0] ^= load_i(p + i);
  for (std::size_t s = 1; s < kStreams; ++s) acc[0] ^= acc[s];
  std::uint32_t all = 0;
  for (int lane = 0; lane < W; ++lane) all ^= static_cast<std::uint32_t>(acc[0][lane]);
  return all;
}

}  // namespace HK_LEVEL
}  // namespace hk::kernels
