// Matrix products of a forward pass: activations prepared once for a group of matrices, weight rows shared out among
// workers.
//
// Layer: models. Use: input.begin(x, matrices); input.prepare_row(i) for every row, on any worker; products.add(...)
// for everything that can run at once; products.run(). Every output element is made by one kernel call in one order, so
// neither the cut into chunks, nor which rows stand beside each other, nor the number of workers shows in the result.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "engine/runtime/profile.h"
#include "engine/runtime/thread_pool.h"
#include "kernels/kernels.h"
#include "models/rows.h"
#include "models/spec.h"

namespace hk::models {

/// Rows that matrices multiply, with the quantized records that the matrices' kernels take.
class PreparedRows {
 public:
  explicit PreparedRows(const kernels::KernelTable& kernels) : kernels_(kernels) {}

  /// Takes x as the input of `matrices`; empty ones are ignored. Floats are used where they lie.
  void begin(const Rows& x, std::initializer_list<const Matrix*> matrices);
  void prepare_row(std::size_t i);
  /// The same for the columns of row i from `first` on, which lie at x: kPartCols of them, a multiple, fewer at the
  /// end. The row is prepared when all of its parts are; neighbouring parts may be prepared at the same time.
  void prepare_part(std::size_t i, std::size_t first, std::size_t cols, const float* x);
  static constexpr std::size_t kPartCols = 256;  // of which every format keeps scales and sums apart
  /// Whether the matrices take floats, for which `x` of `begin` is needed beside the parts.
  static bool take_floats(std::initializer_list<const Matrix*> matrices);

  /// Makes room for n rows picked from `from` for `matrices`, then takes over row `j` of `from` as row i.
  void begin_picked(const PreparedRows& from, std::size_t n, std::initializer_list<const Matrix*> matrices);
  void pick_row(std::size_t i, const PreparedRows& from, std::size_t j);

  const Rows& rows() const { return x_; }
  /// Row i as the kernel of a matrix takes it.
  const void* record(kernels::ActivationFormat format, std::size_t i) const;

  std::size_t bytes() const { return q8x32_.bytes() + q8x256_.bytes() + floats_.bytes(); }

 private:
  void choose(std::initializer_list<const Matrix*> matrices);
  void grow(std::size_t n, std::size_t cols);

  const kernels::KernelTable& kernels_;
  Rows x_;
  bool use_float_ = false;
  bool use_q8x32_ = false;
  bool use_q8x256_ = false;
  engine::AlignedBuffer<std::byte> q8x32_;
  engine::AlignedBuffer<std::byte> q8x256_;
  RowBuffer floats_;  // of picked rows
};

/// out = matrix rows [first_row, first_row + rows) * input rows [first, first + n), times the scale, plus the bias.
struct ProductPart {
  const Matrix& matrix;
  const PreparedRows& input;
  std::size_t first_row, rows;
  std::size_t first, n;
  float* out;
  std::size_t out_stride;
};
void multiply_part(const kernels::KernelTable& kernels, const ProductPart& part);
/// What a product of a matrix with n rows takes at least, for a profile.
engine::StageWork work_of(const Matrix& matrix, std::size_t n);

/// Collects products whose inputs are prepared and runs them in one go over the workers.
class Products {
 public:
  Products(const kernels::KernelTable& kernels, engine::ThreadPool& pool) : kernels_(kernels), pool_(pool) {}

  /// Makes room for so many products at once, so that `add` never allocates.
  void reserve(std::size_t products);

  /// out row i = matrix * input row i, times the matrix's scale, plus its bias, then cap * tanh(y / cap) unless cap is
  /// 0. An empty matrix is ignored.
  void add(const Matrix& matrix, const PreparedRows& input, const Rows& out, float softcap = 0);
  /// The same for `n` rows of the input from `first` on.
  void add_part(const Matrix& matrix, const PreparedRows& input, std::size_t first, std::size_t n, float* out,
                std::size_t out_stride, float softcap = 0);
  /// All of them at once. `stage` is their name in a profile.
  void run(std::string_view stage);

  std::size_t bytes() const {
    return list_.capacity() * sizeof(Product) + first_chunk_.capacity() * sizeof(std::size_t);
  }

 private:
  struct Product {
    Matrix matrix;
    const PreparedRows* input;
    std::size_t first, n;
    float* out;
    std::size_t out_stride;
    float softcap;
    std::size_t chunk_rows;
  };
  void multiply(const Product& product, std::size_t first_row, std::size_t rows) const;

  const kernels::KernelTable& kernels_;
  engine::ThreadPool& pool_;
  std::vector<Product> list_;
  std::vector<std::size_t> first_chunk_;
};

}  // namespace hk::models
