// What the sources of one ISA level define for each other: everything lives in the namespace named after the level.
//
// Part of the level sources; HK_LEVEL is the level's name (kernels/levels.cmake). A level may add a few instructions to
// another one, HK_BASE_LEVEL: then only the sources that use them are compiled for it, and everything else is the other
// level's.
#pragma once

#include "kernels/kernels.h"

#if !defined(HK_BASE_LEVEL)
#define HK_BASE_LEVEL HK_LEVEL
#define HK_OWN_LEVEL
#endif

namespace hk::kernels::HK_BASE_LEVEL {

void quantize_row(ActivationFormat format, const float* x, std::size_t cols, void* record);
MatmulFn matmul(StorageType type);
/// One file a family; null for types of the others.
MatmulFn matmul_float_format(StorageType type);
MatmulFn matmul_block_format(StorageType type);
MatmulFn matmul_super_format(StorageType type);
MatmulFn matmul_grid_format(StorageType type);

void rms_norm(const float* x, const float* weight, float eps, std::size_t n, float* out);
void layer_norm(const float* x, const float* weight, const float* bias, float eps, std::size_t n, float* out);
void add(float* x, const float* y, std::size_t n);
void add_scaled(float* x, const float* y, float scale, std::size_t n);
void scale(float* x, float scale, std::size_t n);
void silu_mul(const float* gate, const float* up, std::size_t n, float* out);
void gelu_mul(const float* gate, const float* up, std::size_t n, float* out);
void relu2_mul(const float* gate, const float* up, std::size_t n, float* out);
void rope_adjacent(float* head, const float* cos, const float* sin, std::size_t n_rot);
void rope_halves(float* head, const float* cos, const float* sin, std::size_t n_rot);
void softmax(float* x, std::size_t n);

void store_key(const float* k, std::size_t head_size, KvType type, std::size_t position, void* page);
void store_value(const float* v, std::size_t value_size, KvType type, std::size_t position, void* page);
void attend_page(const AttendPageArgs& args);
void attend_merge(float* max, float* sum, float* acc, float page_max, float page_sum, const float* page_acc,
                  std::size_t value_size);

std::uint64_t probe_int8_dot(std::uint64_t rounds);
std::uint64_t probe_f32_fma(std::uint64_t rounds);
std::uint64_t probe_bf16_dot(std::uint64_t rounds);
std::uint32_t probe_read(const void* data, std::size_t bytes);

/// The level's table.
extern const KernelTable kTable;

}  // namespace hk::kernels::HK_BASE_LEVEL

#if !defined(HK_OWN_LEVEL)
namespace hk::kernels::HK_LEVEL {

using namespace HK_BASE_LEVEL;
MatmulFn matmul(StorageType type);
MatmulFn matmul_grid_format(StorageType type);
extern const KernelTable kTable;

}  // namespace hk::kernels::HK_LEVEL
#endif
