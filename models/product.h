// Matrix products of a forward pass: activations prepared once for a group of matrices, weight rows shared out among
// workers.
//
// Layer: models. Use: begin(x, matrices); prepare_row(i) for every row, on any worker; run(products). Every output
// element is made by one kernel call in one order, so neither the cut into chunks nor the number of workers shows in
// the result.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string_view>

#include "engine/runtime/profile.h"
#include "engine/runtime/thread_pool.h"
#include "kernels/kernels.h"
#include "models/rows.h"
#include "models/spec.h"

namespace hk::models {

/// out row i = matrix * x row i, times the matrix's scale, plus its bias, then soft-capped.
struct Product {
  const Matrix* matrix = nullptr;
  float* out = nullptr;
  std::size_t out_stride = 0;
  float softcap = 0;  ///< cap * tanh(y / cap); 0: none
};

class Products {
 public:
  Products(const kernels::KernelTable& kernels, engine::ThreadPool& pool) : kernels_(kernels), pool_(pool) {}

  /// Takes x as the input of the next products; empty matrices are ignored.
  void begin(const Rows& x, std::initializer_list<const Matrix*> matrices);
  void prepare_row(std::size_t i);
  void prepare_rows();  ///< all of them
  /// All products of prepared rows in one go over the workers. `stage` is their name in a profile.
  void run(std::string_view stage, std::initializer_list<Product> products);

  std::size_t bytes() const { return q8x32_.bytes() + q8x256_.bytes(); }

 private:
  void count(engine::StageTimer& timer, std::initializer_list<Product> products) const;
  void multiply(const Product& product, std::size_t first_row, std::size_t rows) const;

  const kernels::KernelTable& kernels_;
  engine::ThreadPool& pool_;
  Rows x_;
  bool use_q8x32_ = false;
  bool use_q8x256_ = false;
  engine::AlignedBuffer<std::byte> q8x32_;
  engine::AlignedBuffer<std::byte> q8x256_;
};

}  // namespace hk::models
