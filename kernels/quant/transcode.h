// Blocks of types that .hk has no number for, written as q4_0 with exactly the same values.
//
// Layer: kernels.
#pragma once

#include <cstddef>

#include "kernels/quant/format.h"

namespace hk::kernels {

/// `n` elements (a whole number of blocks) of q1_0 or q2_0 as q4_0: the same scale for every 32 of them, and codes that
/// mean the same multiples of it. (An encoder would choose a scale from the largest value and lose some.)
void transcode_to_q4_0(StorageType type, const void* blocks, void* q4_0, std::size_t n);

}  // namespace hk::kernels
