// The quantizers behind the table of formats.
//
// Layer: kernels. Each has the signature of EncodeFn in format.h. Input should be finite: NaN and infinity do no harm
// but give codes without meaning. Grid formats (iq1, iq2, iq3) have no quantizer here: they need importance data to be
// of use.
#pragma once

#include <cstddef>

namespace hk::kernels {

// Byte-exact recipes: every implementation of them writes the same bytes.
void encode_f32(const float* values, void* blocks, std::size_t n);
void encode_f16(const float* values, void* blocks, std::size_t n);
void encode_bf16(const float* values, void* blocks, std::size_t n);
void encode_q4_0(const float* values, void* blocks, std::size_t n);
void encode_q4_1(const float* values, void* blocks, std::size_t n);
void encode_q5_0(const float* values, void* blocks, std::size_t n);
void encode_q5_1(const float* values, void* blocks, std::size_t n);
void encode_q8_0(const float* values, void* blocks, std::size_t n);
void encode_q8_1(const float* values, void* blocks, std::size_t n);
void encode_q8_k(const float* values, void* blocks, std::size_t n);
void encode_tq1_0(const float* values, void* blocks, std::size_t n);
void encode_tq2_0(const float* values, void* blocks, std::size_t n);
void encode_mxfp4(const float* values, void* blocks, std::size_t n);
void encode_nvfp4(const float* values, void* blocks, std::size_t n);

// Searches for a small error, without importance weights; bytes are ours, the error is that of the reference.
void encode_q2_k(const float* values, void* blocks, std::size_t n);
void encode_q3_k(const float* values, void* blocks, std::size_t n);
void encode_q4_k(const float* values, void* blocks, std::size_t n);
void encode_q5_k(const float* values, void* blocks, std::size_t n);
void encode_q6_k(const float* values, void* blocks, std::size_t n);
void encode_iq4_nl(const float* values, void* blocks, std::size_t n);
void encode_iq4_xs(const float* values, void* blocks, std::size_t n);

}  // namespace hk::kernels
