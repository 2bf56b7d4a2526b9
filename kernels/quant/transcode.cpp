// Blocks of types that .hk has no number for, written as q4_0 (see transcode.h).
#include "kernels/quant/transcode.h"

#include <cstdint>

#include "kernels/quant/blocks.h"

namespace hk::kernels {
namespace {

constexpr unsigned kZero = 8;  // the code of 0 in q4_0

unsigned code(const BlockQ1_0& block, unsigned i) {
  return (block.qs[i / 8] >> (i % 8) & 1U) != 0 ? kZero + 1 : kZero - 1;
}
unsigned code(const BlockQ2_0& block, unsigned i) { return kZero - 1 + (block.qs[i / 4] >> (2 * (i % 4)) & 3U); }

template <typename Block>
void transcode(const void* blocks, void* q4_0, std::size_t n) {
  const auto* block = static_cast<const Block*>(blocks);
  auto* out = static_cast<BlockQ4_0*>(q4_0);
  for (std::size_t done = 0; done < n; done += Block::kElements, ++block) {
    for (unsigned first = 0; first < Block::kElements; first += 32, ++out) {
      out->d = block->d;
      for (unsigned i = 0; i < 16; ++i)
        out->qs[i] = static_cast<std::uint8_t>(code(*block, first + i) | code(*block, first + i + 16) << 4);
    }
  }
}

}  // namespace

void transcode_to_q4_0(StorageType type, const void* blocks, void* q4_0, std::size_t n) {
  if (type == StorageType::kQ1_0) transcode<BlockQ1_0>(blocks, q4_0, n);
  if (type == StorageType::kQ2_0) transcode<BlockQ2_0>(blocks, q4_0, n);
}

}  // namespace hk::kernels
