// Decoders of the dense types: floats of every width, integers and bool, element by element to f32.
#include <cstring>

#include "kernels/quant/decode.h"
#include "kernels/quant/half.h"

namespace hk::kernels {
namespace {

template <typename Stored, typename Convert>
void decode_elements(const void* elements, float* out, std::size_t n, Convert convert) {
  const auto* bytes = static_cast<const unsigned char*>(elements);
  for (std::size_t i = 0; i < n; ++i) {
    Stored value;
    std::memcpy(&value, bytes + i * sizeof(Stored), sizeof(Stored));  // tensors may start at any address
    out[i] = convert(value);
  }
}

/// Nearest f32, ties to even, for integers and doubles alike.
template <typename Stored>
void decode_numbers(const void* elements, float* out, std::size_t n) {
  decode_elements<Stored>(elements, out, n, [](Stored value) { return static_cast<float>(value); });
}

}  // namespace

void decode_f32(const void* blocks, float* out, std::size_t n) {
  if (n != 0) std::memcpy(out, blocks, n * sizeof(float));
}
void decode_f16(const void* blocks, float* out, std::size_t n) {
  decode_elements<std::uint16_t>(blocks, out, n, f16_to_f32);
}
void decode_bf16(const void* blocks, float* out, std::size_t n) {
  decode_elements<std::uint16_t>(blocks, out, n, bf16_to_f32);
}
void decode_fp8_e4m3(const void* blocks, float* out, std::size_t n) {
  decode_elements<std::uint8_t>(blocks, out, n, fp8_e4m3_to_f32);
}
void decode_fp8_e5m2(const void* blocks, float* out, std::size_t n) {
  decode_elements<std::uint8_t>(blocks, out, n, fp8_e5m2_to_f32);
}
void decode_int8(const void* blocks, float* out, std::size_t n) { decode_numbers<std::int8_t>(blocks, out, n); }
void decode_int16(const void* blocks, float* out, std::size_t n) { decode_numbers<std::int16_t>(blocks, out, n); }
void decode_int32(const void* blocks, float* out, std::size_t n) { decode_numbers<std::int32_t>(blocks, out, n); }
void decode_int64(const void* blocks, float* out, std::size_t n) { decode_numbers<std::int64_t>(blocks, out, n); }
void decode_uint8(const void* blocks, float* out, std::size_t n) { decode_numbers<std::uint8_t>(blocks, out, n); }
void decode_uint16(const void* blocks, float* out, std::size_t n) { decode_numbers<std::uint16_t>(blocks, out, n); }
void decode_uint32(const void* blocks, float* out, std::size_t n) { decode_numbers<std::uint32_t>(blocks, out, n); }
void decode_uint64(const void* blocks, float* out, std::size_t n) { decode_numbers<std::uint64_t>(blocks, out, n); }
void decode_f64(const void* blocks, float* out, std::size_t n) { decode_numbers<double>(blocks, out, n); }
void decode_bool(const void* blocks, float* out, std::size_t n) {
  decode_elements<std::uint8_t>(blocks, out, n, [](std::uint8_t value) { return value != 0 ? 1.0f : 0.0f; });
}

}  // namespace hk::kernels
