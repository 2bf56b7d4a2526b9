// The exact scalar decoders behind the table of formats: the reference that every faster kernel is tested against.
//
// Layer: kernels. Each has the signature and the promise of DecodeFn in format.h. Floats are multiplied in the order of
// the format description and integers become floats before they meet one, so that even the sign of a zero is right.
#pragma once

#include <cstddef>

namespace hk::kernels {

// One element after another (decode_dense.cpp).
void decode_f32(const void* blocks, float* out, std::size_t n);
void decode_f16(const void* blocks, float* out, std::size_t n);
void decode_bf16(const void* blocks, float* out, std::size_t n);
void decode_fp8_e4m3(const void* blocks, float* out, std::size_t n);
void decode_fp8_e5m2(const void* blocks, float* out, std::size_t n);
void decode_int8(const void* blocks, float* out, std::size_t n);
void decode_int32(const void* blocks, float* out, std::size_t n);
void decode_int64(const void* blocks, float* out, std::size_t n);
void decode_uint8(const void* blocks, float* out, std::size_t n);
void decode_bool(const void* blocks, float* out, std::size_t n);
void decode_int16(const void* blocks, float* out, std::size_t n);
void decode_uint16(const void* blocks, float* out, std::size_t n);
void decode_uint32(const void* blocks, float* out, std::size_t n);
void decode_uint64(const void* blocks, float* out, std::size_t n);
void decode_f64(const void* blocks, float* out, std::size_t n);

// Legacy blocks of 32 (decode_legacy.cpp).
void decode_q4_0(const void* blocks, float* out, std::size_t n);
void decode_q1_0(const void* blocks, float* out, std::size_t n);
void decode_q2_0(const void* blocks, float* out, std::size_t n);
void decode_q4_1(const void* blocks, float* out, std::size_t n);
void decode_q5_0(const void* blocks, float* out, std::size_t n);
void decode_q5_1(const void* blocks, float* out, std::size_t n);
void decode_q8_0(const void* blocks, float* out, std::size_t n);
void decode_q8_1(const void* blocks, float* out, std::size_t n);

// K-quants and q8_k (decode_k.cpp).
void decode_q2_k(const void* blocks, float* out, std::size_t n);
void decode_q3_k(const void* blocks, float* out, std::size_t n);
void decode_q4_k(const void* blocks, float* out, std::size_t n);
void decode_q5_k(const void* blocks, float* out, std::size_t n);
void decode_q6_k(const void* blocks, float* out, std::size_t n);
void decode_q8_k(const void* blocks, float* out, std::size_t n);

// Grid formats (decode_grid.cpp).
void decode_iq1_s(const void* blocks, float* out, std::size_t n);
void decode_iq1_m(const void* blocks, float* out, std::size_t n);
void decode_iq2_xxs(const void* blocks, float* out, std::size_t n);
void decode_iq2_xs(const void* blocks, float* out, std::size_t n);
void decode_iq2_s(const void* blocks, float* out, std::size_t n);
void decode_iq3_xxs(const void* blocks, float* out, std::size_t n);
void decode_iq3_s(const void* blocks, float* out, std::size_t n);

// Four-bit codes into a table of 16 values (decode_table16.cpp).
void decode_iq4_nl(const void* blocks, float* out, std::size_t n);
void decode_iq4_xs(const void* blocks, float* out, std::size_t n);
void decode_mxfp4(const void* blocks, float* out, std::size_t n);
void decode_nvfp4(const void* blocks, float* out, std::size_t n);

// Ternary formats (decode_ternary.cpp).
void decode_tq1_0(const void* blocks, float* out, std::size_t n);
void decode_tq2_0(const void* blocks, float* out, std::size_t n);

}  // namespace hk::kernels
