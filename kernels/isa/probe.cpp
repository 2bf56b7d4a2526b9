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
// Vectors loaded an iteration: whole cache lines at every width, and far more loads in flight than lines can arrive.
inline constexpr int kLoads = 8;
// How far ahead lines are asked for, in bytes: on cores whose own prefetcher stops at every page, 1.13 times the rate
// without. Past the end, a request for memory that is not there does nothing.
inline constexpr int kReadAhead = 1024;

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
  constexpr std::size_t kStep = kLoads * 4 * W;
  vi acc[kLoads] = {};
  for (std::size_t i = 0; i + kStep <= bytes; i += kStep) {
#pragma GCC unroll 8
    for (int j = 0; j < kLoads; ++j) {
      if (j * 4 * W % 64 == 0) __builtin_prefetch(p + i + kReadAhead + j * 4 * W);
      acc[j] ^= load_i(p + i + j * 4 * W);
    }
  }
  for (int j = 1; j < kLoads; ++j) acc[0] ^= acc[j];
  std::uint32_t all = 0;
  for (int lane = 0; lane < W; ++lane) all ^= static_cast<std::uint32_t>(acc[0][lane]);
  return all;
}

}  // namespace HK_LEVEL
}  // namespace hk::kernels
