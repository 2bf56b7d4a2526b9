// Codebooks that turn the codes of the grid, nonlinear and FP4 formats into small integers.
//
// Layer: kernels. Data only, generated into codebooks.cpp by scripts/generate_codebooks.py. Element j of a grid point
// is byte j of its word, so a point is loaded straight into a SIMD register. Tables start on a cache line.
#pragma once

#include <cstdint>

namespace hk::kernels {

/// Magnitudes 8, 25, 43; signs are stored apart.
extern const std::uint64_t kIQ2XXSGrid[256];
extern const std::uint64_t kIQ2XSGrid[512];
extern const std::uint64_t kIQ2SGrid[1024];
/// Signed bytes -1, 0, 1; used by iq1_s and iq1_m.
extern const std::uint64_t kIQ1SGrid[2048];
/// Magnitudes 4..62; signs are stored apart.
extern const std::uint32_t kIQ3XXSGrid[256];
/// Magnitudes 1, 3, .. 15; signs are stored apart.
extern const std::uint32_t kIQ3SGrid[512];

/// The same points in 16 bits for SIMD lookups: the number of an element's level (rising from 0), even elements in the
/// low byte and odd ones in the high byte, 2 bits each for eight elements, 4 bits each for four.
extern const std::uint16_t kIQ2XXSPacked[256];
extern const std::uint16_t kIQ2XSPacked[512];
extern const std::uint16_t kIQ2SPacked[1024];
extern const std::uint16_t kIQ1SPacked[2048];
extern const std::uint16_t kIQ3XXSPacked[256];
extern const std::uint16_t kIQ3SPacked[512];

/// The low and the high bytes of these, for lookups of bytes.
extern const std::uint8_t kIQ2XXSPlanes[2][256];
extern const std::uint8_t kIQ2XSPlanes[2][512];
extern const std::uint8_t kIQ2SPlanes[2][1024];
extern const std::uint8_t kIQ3XXSPlanes[2][256];
extern const std::uint8_t kIQ3SPlanes[2][512];

/// 7-bit sign index to sign mask of 8 elements: bit 7 makes the number of set bits even.
extern const std::uint8_t kSigns[128];

/// Values of the 4-bit codes of iq4_nl and iq4_xs.
extern const std::int8_t kIQ4NLValues[16];
/// Twice the E2M1 values of the 4-bit codes of mxfp4 and nvfp4.
extern const std::int8_t kE2M1Values[16];

}  // namespace hk::kernels
