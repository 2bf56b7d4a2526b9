// Binding tensors of the file to what the forward pass uses: matrices with their kernels, vectors as f32, lookup
// tables.
//
// Layer: models. Matrices are never copied; vectors that are not plain f32 are decoded once. Whatever is missing,
// misshapen or stored in a type that cannot be run is refused by name. Not here: which tensors a family has
// (models/families).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "engine/container/model_reader.h"
#include "models/spec.h"

namespace hk::models {

enum class Bias : std::uint8_t { kOptional, kRequired };

class Weights {
 public:
  /// `owned` receives vectors that had to be decoded; it must live as long as what is bound.
  Weights(const engine::ModelReader& reader, const kernels::KernelTable& kernels, std::string architecture,
          std::vector<std::vector<float>>& owned);

  bool contains(std::string_view tensor) const { return reader_.find(tensor) != nullptr; }
  std::size_t tensors_in_file() const { return reader_.tensors().size(); }

  /// NAME.weight [rows, cols], with NAME.bias [rows] and NAME.scale [1] when the file has them.
  Matrix matrix(const std::string& name, std::size_t rows, std::size_t cols, Bias bias = Bias::kOptional);
  /// The same without bias and scale, for files where tensors of those names mean something else.
  Matrix bare_matrix(const std::string& name, std::size_t rows, std::size_t cols);
  /// The matrices of all experts: NAME.weight [experts, rows, cols], with NAME.bias [experts, rows] and NAME.scale
  /// [experts] when the file has them.
  MatrixBank bank(const std::string& name, std::size_t experts, std::size_t rows, std::size_t cols);
  /// NAME.weight [any, cols], rows decoded on demand.
  LookupTable table(const std::string& name, std::size_t cols);
  /// A whole tensor of n values by its full name.
  const float* vector(const std::string& tensor, std::size_t n);
  /// The same whatever its shape, when only the number of values matters.
  const float* values_of(const std::string& tensor, std::size_t n);
  /// The same for a small f32 use of a matrix [rows, cols], such as one norm weight a head.
  const float* vectors(const std::string& tensor, std::size_t rows, std::size_t cols);
  /// Null when the file has no such tensor.
  const float* optional_vector(const std::string& tensor, std::size_t n);
  /// Puts values made at load among the owned ones.
  const float* keep(std::vector<float> values);

  /// A tensor that the file may hold though nothing reads it: no remark about it.
  void leave_out(const std::string& tensor);

  std::uint64_t bytes() const { return bytes_; }            ///< of all tensors bound, each counted once
  std::uint64_t parameters() const { return parameters_; }  ///< elements of the same
  /// Tensors of the file that nothing was bound to, in file order.
  std::vector<std::string> unused() const;

 private:
  Matrix bind(const engine::TensorView& view, std::size_t count, std::size_t rows, std::size_t cols);
  const engine::TensorView& require(const std::string& tensor, std::string_view expected_shape);
  const engine::TensorView& usable(const engine::TensorView& view) const;
  engine::StorageType storage_type(const engine::TensorView& view) const;
  const kernels::Format& format(const engine::TensorView& view) const;
  std::size_t row_bytes(const engine::TensorView& view, const kernels::Format& format, std::size_t cols) const;
  const float* values(const engine::TensorView& view, std::size_t n);
  void check_payload(const engine::TensorView& view, std::size_t rows, std::size_t bytes_a_row) const;
  [[noreturn]] void misshapen(const engine::TensorView& view, std::string_view expected) const;
  void count(const engine::TensorView& view);

  const engine::ModelReader& reader_;
  const kernels::KernelTable& kernels_;
  std::string architecture_;
  std::vector<std::vector<float>>& owned_;
  std::unordered_set<std::string_view> used_;
  std::unordered_set<const std::byte*> counted_;
  std::uint64_t bytes_ = 0;
  std::uint64_t parameters_ = 0;
};

}  // namespace hk::models
