// The decoders of payloads that the kernels do not know: dual, split, sparse and tiled ones.
//
// Layer: engine/container. Used by dequantize_to_f32 alone, after check_sizes and check_contents found no fault;
// `out` holds exactly the tensor's elements. Plain loops: these types are stored, not run.
#pragma once

#include <span>

#include "engine/container/model_reader.h"

namespace hk::engine {

void decode_tiled(const TensorView& tensor, std::span<float> out);
void decode_dual(const TensorView& tensor, std::span<float> out);
void decode_split_blocks(const TensorView& tensor, std::span<float> out);
void decode_bitmask(const TensorView& tensor, std::span<float> out);
void decode_2_4(const TensorView& tensor, std::span<float> out);
void decode_block_sparse(const TensorView& tensor, std::span<float> out);

}  // namespace hk::engine
