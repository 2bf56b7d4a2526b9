// Weight matrices for the benches: made-up blocks of one format, more of them than the last-level cache holds.
//
// A layer's weights come from memory at every token, because all other layers' passed through the cache meanwhile. So a
// matrix is there in as many copies as it takes to exceed the caches four times, and each product takes the next copy.
// Memory is anonymous, written before and on huge pages where there are any, as a model's weights are when the system
// can (docs/memory.md).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/runtime/aligned_buffer.h"
#include "engine/runtime/memory.h"
#include "engine/runtime/thread_pool.h"
#include "kernels/quant/format.h"
#include "kernels/quant/sample_blocks.h"

namespace hk::bench {

struct MatrixShape {
  std::size_t rows = 0;
  std::size_t cols = 0;
};

class WeightArena {
 public:
  /// `cold_bytes`: what the copies of a matrix take together at least.
  explicit WeightArena(std::size_t cold_bytes) : cold_bytes_(cold_bytes) {}

  /// Blocks of `format` for the largest of `shapes`.
  void fill(const kernels::Format& format, const std::vector<MatrixShape>& shapes, engine::ThreadPool& pool) {
    format_ = &format;
    std::size_t bytes = 0;
    for (const MatrixShape& shape : shapes) bytes = std::max(bytes, copies(shape) * stride(shape));
    constexpr std::size_t kPatternBlocks = 4096;  // distinct blocks; the rest repeats them
    const std::size_t pattern = kPatternBlocks * format.block_bytes;
    if (bytes > buffer_.size()) buffer_ = {};  // the old one goes before the new one comes
    if (bytes > buffer_.size()) {
      buffer_ = engine::AlignedBuffer<std::uint8_t>(bytes, "the weights of a bench");
      engine::prefer_huge_pages(buffer_.data(), bytes);
    }
    std::vector<std::uint8_t> blocks(pattern);
    kernels::SampleRandom random(1);
    if (!kernels::fill_sample_blocks(format, blocks.data(), kPatternBlocks, random))
      throw Error("there are no made-up weights of type " + std::string(format.name));
    pool.run((bytes + pattern - 1) / pattern, [&](std::size_t chunk, int) {
      std::memcpy(buffer_.data() + chunk * pattern, blocks.data(), std::min(pattern, bytes - chunk * pattern));
    });
  }

  std::size_t row_bytes(const MatrixShape& shape) const {
    return shape.cols / format_->block_elements * format_->block_bytes;
  }
  std::size_t copies(const MatrixShape& shape) const {
    return std::max<std::size_t>(1, (cold_bytes_ + stride(shape) - 1) / stride(shape));
  }
  /// The `n`-th copy, counted round and round.
  const std::uint8_t* matrix(const MatrixShape& shape, std::size_t n) const {
    return buffer_.data() + n % copies(shape) * stride(shape);
  }

 private:
  /// Copies begin on a cache line and, since the arena is one long row of blocks, with a block.
  std::size_t stride(const MatrixShape& shape) const {
    const std::size_t unit = std::lcm<std::size_t>(engine::kCacheLine, format_->block_bytes);
    return (shape.rows * row_bytes(shape) + unit - 1) / unit * unit;
  }

  std::size_t cold_bytes_;
  const kernels::Format* format_ = nullptr;
  engine::AlignedBuffer<std::uint8_t> buffer_;
};

}  // namespace hk::bench
