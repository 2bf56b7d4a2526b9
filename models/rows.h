// Row-major float buffers of a forward pass, and sharing out independent rows among the workers.
//
// Layer: models. Rows start on 64-byte boundaries, so that f32 rows are activation records as they lie
// (kernels/activation.h).
#pragma once

#include <algorithm>
#include <cstddef>

#include "engine/runtime/aligned_buffer.h"
#include "engine/runtime/thread_pool.h"
#include "kernels/activation.h"

namespace hk::models {

/// A view of n rows of `cols` floats.
struct Rows {
  float* data = nullptr;
  std::size_t stride = 0;  ///< floats from one row to the next
  std::size_t n = 0;
  std::size_t cols = 0;

  float* operator[](std::size_t i) const { return data + i * stride; }
};

/// Owns rows; grows when asked for more than before and keeps what it has.
class RowBuffer {
 public:
  Rows shape(std::size_t n, std::size_t cols) {
    const std::size_t stride = kernels::activation_layout(kernels::ActivationFormat::kF32, cols).stride / sizeof(float);
    if (n * stride > buffer_.size())
      buffer_ = engine::AlignedBuffer<float>(n * stride, "the activations of a forward pass");
    return {buffer_.data(), stride, n, cols};
  }
  std::size_t bytes() const { return buffer_.bytes(); }

 private:
  engine::AlignedBuffer<float> buffer_;
};

/// Calls f(first, end) for runs of rows that cover all n. A handful of rows is done by the caller: waking workers costs
/// more (microseconds) than a norm.
template <typename F>
void for_row_runs(engine::ThreadPool& pool, std::size_t n, F&& f) {
  constexpr std::size_t kInline = 4;
  const std::size_t threads = static_cast<std::size_t>(pool.threads());
  if (pool.rehearses()) return;
  if (n <= kInline || threads == 1) return f(std::size_t{0}, n);
  const std::size_t rows = std::max<std::size_t>(1, n / (threads * 4));  // a few chunks a thread level out slow cores
  pool.run((n + rows - 1) / rows, [&](std::size_t chunk, int) { f(chunk * rows, std::min(n, (chunk + 1) * rows)); });
}

/// Calls f(i) for every row.
template <typename F>
void for_rows(engine::ThreadPool& pool, std::size_t n, F&& f) {
  for_row_runs(pool, n, [&](std::size_t first, std::size_t end) {
    for (std::size_t i = first; i < end; ++i) f(i);
  });
}

}  // namespace hk::models
