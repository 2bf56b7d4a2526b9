// Loop over the blocks of a row, shared by the decoders.
//
// Layer: kernels, private to kernels/quant.
#pragma once

#include <cstddef>

namespace hk::kernels {

/// Calls One(block, Block::kElements outputs) for every block.
template <typename Block, void (*One)(const Block&, float*)>
void decode_each(const void* blocks, float* out, std::size_t n) {
  const auto* block = static_cast<const Block*>(blocks);
  for (std::size_t done = 0; done < n; done += Block::kElements) One(*block++, out + done);
}

}  // namespace hk::kernels
