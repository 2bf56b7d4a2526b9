// The numeric kernels of one ISA level as a table of function pointers, and the choice of the level at run time.
//
// Layer: kernels. Numbers only: no file, no model, no thread. Every level (kernels/levels/*.cpp) is the same generic
// body compiled for one instruction set; nothing above this header knows which one runs.
//
// Promises kept by every kernel:
//  - one output element is computed in one fixed order, whatever rows, activations or threads surround it: `matmul`
//  with one
//    activation row and with 512 give the same bits for the same row. So no result depends on batch, chunk or thread
//    count.
//  - integers are the same on all levels; floats differ between levels only by fused multiply-add and exp's last bits.
//  - nothing allocates. Pointers need no alignment unless said.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/activation.h"
#include "kernels/kv_type.h"
#include "kernels/quant/format.h"

namespace hk::kernels {

/// out[i * out_stride + r] = dot(weight row r, activation row i), for all r < rows, i < n.
struct MatmulArgs {
  const void* weights;        ///< first weight row, blocks as stored
  std::size_t weight_stride;  ///< bytes from one weight row to the next
  std::size_t rows;           ///< weight rows in this call (any number >= 0; multiples of 32 are fastest)
  std::size_t cols;           ///< elements a row; a multiple of the format's block
  const void* activations;    ///< first activation record (kernels/activation.h), 64-byte aligned
  std::size_t activation_stride;
  std::size_t n;  ///< activation rows
  float* out;
  std::size_t out_stride;  ///< floats from one activation's results to the next
};
using MatmulFn = void (*)(const MatmulArgs& args);

/// Up to so many activation rows, matrix kernels read each weight once and pass it through registers (isa/panel.h):
/// then memory decides how fast they are, and with more of them arithmetic.
inline constexpr std::size_t kStreamedRows = 8;
/// Queries that attention takes at a time; more are cut into chunks.
inline constexpr std::size_t kQueryChunk = 32;
/// Scratch memory of attend_page: rows of scores, and for q8_0 queries and weights as integers. Small enough for L2.
static constexpr std::size_t attend_scratch_bytes(KvType type, std::size_t head_size) {
  const std::size_t scores = kQueryChunk * kKvPage * sizeof(float);
  if (type != KvType::kQ8_0) return scores;
  const std::size_t blocks = (head_size + kKeyBlock - 1) / kKeyBlock;
  const std::size_t digits = 2 * kKvPage, codes = blocks * (kKeyBlock + sizeof(float) + sizeof(std::int32_t));
  return scores + kQueryChunk * (digits + codes + sizeof(float));
}

/// One page of one KV head against `n` query vectors that share it.
struct AttendPageArgs {
  const void* k;  ///< a page as kernels/kv_type.h lays it out; unwritten positions may hold anything
  const void* v;
  KvType type;
  std::size_t head_size;  ///< of queries and keys
  std::size_t value_size;
  std::size_t n;                 ///< queries
  const float* const* q;         ///< n pointers to head_size floats, already multiplied by the attention scale
  const std::uint16_t* first;    ///< n: first visible position in the page
  const std::uint16_t* last;     ///< n: one past the last visible position; first >= last: nothing visible
  float softcap;                 ///< 0: none, else cap * tanh(x / cap) on scores
  const float* slope;            ///< null, or n ALiBi slopes: score += slope * (position - query position)
  const std::int32_t* distance;  ///< with slope: n values, (position of the page's first key) - (query position)
  float* max;                    ///< n results: largest score, -inf when nothing is visible
  float* sum;                    ///< n results: sum of exp(score - max)
  float* const* acc;             ///< n pointers to value_size floats: sum of exp(score - max) * v
  void* scratch;                 ///< attend_scratch_bytes(type, head_size), 64-byte aligned
  const void* next = nullptr;    ///< keys of the page that the caller visits next, or null: asked for in time
  bool again = false;            ///< q, n, type and sizes are those of the last call with this scratch memory
};

/// Loops that reach a level's peak, for the roofline probe (engine/runtime/roofline.h). Not used to compute anything.
struct ProbeKernels {
  /// Run `rounds` rounds out of registers and return the multiply-accumulates done: the level's own int8 dot and f32
  /// multiply-add, and the bf16 dot, which returns 0 where the level or this CPU has none.
  std::uint64_t (*int8_dot)(std::uint64_t rounds);
  std::uint64_t (*f32_fma)(std::uint64_t rounds);
  std::uint64_t (*bf16_dot)(std::uint64_t rounds);
  /// Reads `bytes` (a multiple of kProbeReadUnit) once; returns the exclusive or of all 32-bit words.
  std::uint32_t (*read)(const void* data, std::size_t bytes);
};
inline constexpr std::size_t kProbeReadUnit = 1024;

struct KernelTable {
  std::string_view
      level;  ///< "generic", "avx2", "avx2_vnni", "avx512", "avx512_vnni", "avx512_vbmi", "neon", "neon_dotprod"

  /// Prepares one activation row (see kernels/activation.h). `cols` must be a multiple of the format's group.
  void (*quantize_row)(ActivationFormat format, const float* x, std::size_t cols, void* record);
  /// Matrix product for a weight type; null when this type has no kernel (the engine refuses it by name).
  /// Takes activations in `activation_of(type)`.
  MatmulFn (*matmul)(StorageType type);

  /// out = x / sqrt(mean(x^2) + eps) * weight. `weight` may be null (all ones); out may be x.
  void (*rms_norm)(const float* x, const float* weight, float eps, std::size_t n, float* out);
  /// out = (x - mean) / sqrt(variance + eps) * weight + bias. `weight`, `bias` may be null; out may be x.
  void (*layer_norm)(const float* x, const float* weight, const float* bias, float eps, std::size_t n, float* out);
  /// x += y; x += scale * y; x *= scale.
  void (*add)(float* x, const float* y, std::size_t n);
  void (*add_scaled)(float* x, const float* y, float scale, std::size_t n);
  void (*scale)(float* x, float scale, std::size_t n);
  /// out = silu(gate) * up; gelu with the tanh form; relu(gate)^2 * up. `up` may be null (then no product). out may be
  /// gate.
  void (*silu_mul)(const float* gate, const float* up, std::size_t n, float* out);
  void (*gelu_mul)(const float* gate, const float* up, std::size_t n, float* out);
  void (*relu2_mul)(const float* gate, const float* up, std::size_t n, float* out);
  /// Rotates one head in place: pair i is (2i, 2i+1) for `rope_adjacent`, (i, i + n_rot / 2) for `rope_halves`.
  /// cos and sin hold n_rot / 2 values; dims from n_rot on are left alone by the caller's choice of pointer range.
  void (*rope_adjacent)(float* head, const float* cos, const float* sin, std::size_t n_rot);
  void (*rope_halves)(float* head, const float* cos, const float* sin, std::size_t n_rot);
  /// In place; returns nothing for n == 0.
  void (*softmax)(float* x, std::size_t n);

  /// Writes one position's key (head_size floats) or value into a page of one head.
  void (*store_key)(const float* k, std::size_t head_size, KvType type, std::size_t position, void* page);
  void (*store_value)(const float* v, std::size_t value_size, KvType type, std::size_t position, void* page);
  void (*attend_page)(const AttendPageArgs& args);
  /// Folds a page's partial result into the running one: (max, sum, acc) <- merge of both, in this order.
  void (*attend_merge)(float* max, float* sum, float* acc, float page_max, float page_sum, const float* page_acc,
                       std::size_t value_size);

  ProbeKernels probe;
};

/// Activation format that `matmul(type)` of every level takes.
ActivationFormat activation_of(StorageType type);

/// Levels compiled into this binary that this CPU can run, best first. Never empty: "generic" is always last.
std::span<const KernelTable* const> usable_levels();
/// Names of all levels compiled in, usable or not, best first.
std::span<const std::string_view> compiled_levels();
/// The level in use: the best usable one, or the one that HK_KERNELS names. When HK_KERNELS names a level that is
/// unknown or that this CPU cannot run, returns null and `*why` (static text or thread-local) says so; the caller turns
/// that into an error.
const KernelTable* select_level(std::string_view forced, const char** why);
/// select_level(getenv("HK_KERNELS")), remembered; falls back to the best level when the variable is unusable.
const KernelTable& kernels();

}  // namespace hk::kernels
