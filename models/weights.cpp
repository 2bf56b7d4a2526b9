// Binding tensors of the file to what the forward pass uses (see weights.h).
#include "models/weights.h"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "base/error.h"

namespace hk::models {

using engine::Sparsity;
using engine::StorageType;
using engine::TensorView;
using engine::TileLayout;

Weights::Weights(const engine::ModelReader& reader, const kernels::KernelTable& kernels, std::string architecture,
                 std::vector<std::vector<float>>& owned)
    : reader_(reader), kernels_(kernels), architecture_(std::move(architecture)), owned_(owned) {}

const TensorView& Weights::require(const std::string& tensor, std::string_view expected_shape) {
  const TensorView* view = reader_.find(tensor);
  if (view == nullptr)
    throw Error(fmt::format("{}: the tensor '{}' is missing; the {} model needs it with shape {}", reader_.path(),
                            tensor, architecture_, expected_shape));
  return usable(*view);
}

/// Refuses what the reader could only list, and layouts that are stored but not run.
const TensorView& Weights::usable(const TensorView& view) const {
  if (!view.problem.empty()) throw Error(view.problem);
  if (view.tile_layout != TileLayout::kRowMajor)
    throw Error(
        fmt::format("{}: the tensor '{}' is stored in tiles or columns (layout {}); the engine runs row-major "
                    "tensors only",
                    reader_.path(), view.name, static_cast<int>(view.tile_layout)));
  if (view.sparsity != Sparsity::kNone)
    throw Error(fmt::format("{}: the tensor '{}' is stored sparse (kind {}); the engine runs dense tensors only",
                            reader_.path(), view.name, static_cast<int>(view.sparsity)));
  if (!view.scales.empty() || !view.residual.empty())
    throw Error(
        fmt::format("{}: the tensor '{}' keeps its {} in a stream of their own; the engine runs {} only where "
                    "the blocks hold everything",
                    reader_.path(), view.name, view.scales.empty() ? "residuals" : "scales",
                    kernels::storage_type_name(view.type)));
  return view;
}

/// A shared reference does not say its type: it is that of the tensor whose bytes it names.
StorageType Weights::storage_type(const TensorView& view) const {
  if (view.type != StorageType::kSharedRef) return view.type;
  for (const TensorView& other : reader_.tensors()) {
    if (other.type != StorageType::kSharedRef && other.data.data() == view.data.data() && !other.data.empty())
      return usable(other).type;
  }
  throw Error(
      fmt::format("{}: the tensor '{}' refers to bytes that belong to no other tensor", reader_.path(), view.name));
}

const kernels::Format& Weights::format(const TensorView& view) const {
  const StorageType type = storage_type(view);
  const kernels::Format* format = kernels::find_format(type);
  if (format == nullptr || format->block_elements == 0 || format->block_bytes == 0 || format->decode == nullptr)
    throw Error(fmt::format("{}: the tensor '{}' is stored as {}, which the engine does not run", reader_.path(),
                            view.name, kernels::storage_type_name(type)));
  return *format;
}

std::size_t Weights::row_bytes(const TensorView& view, const kernels::Format& format, std::size_t cols) const {
  if (cols % format.block_elements != 0)
    throw Error(fmt::format("{}: the tensor '{}' has rows of {} values, but {} needs a multiple of {}", reader_.path(),
                            view.name, cols, format.name, format.block_elements));
  return cols / format.block_elements * format.block_bytes;
}

/// The reader checked this when it opened the file; looked at again because reading past a mapping is not an exception.
void Weights::check_payload(const TensorView& view, std::size_t rows, std::size_t bytes_a_row) const {
  if (bytes_a_row == 0 || rows > view.data.size() / bytes_a_row)
    throw Error(fmt::format("{}: the tensor '{}' of shape {} holds {} bytes, too few for rows of {} bytes",
                            reader_.path(), view.name, view.shape_text(), view.data.size(), bytes_a_row));
}

void Weights::misshapen(const TensorView& view, std::string_view expected) const {
  throw Error(fmt::format("{}: the tensor '{}' has shape {}, but the {} model expects {}", reader_.path(), view.name,
                          view.shape_text(), architecture_, expected));
}

void Weights::count(const TensorView& view) {
  used_.insert(view.name);
  if (!counted_.insert(view.data.data()).second) return;
  bytes_ += view.data.size();
  parameters_ += view.elements();
}

/// The first of `count` matrices that lie behind one another in a tensor of the right shape.
Matrix Weights::bind(const TensorView& view, std::size_t matrices, std::size_t rows, std::size_t cols) {
  const kernels::Format& stored = format(view);
  Matrix matrix;
  matrix.multiply = kernels_.matmul(stored.type);
  if (matrix.multiply == nullptr)
    throw Error(fmt::format("{}: the matrix '{}' is stored as {}, for which there is no kernel (level {})",
                            reader_.path(), view.name, stored.name, kernels_.level));
  matrix.activation = kernels::activation_of(stored.type);
  matrix.type = stored.type;
  matrix.row_bytes = row_bytes(view, stored, cols);
  std::size_t all_rows = 0;
  if (__builtin_mul_overflow(matrices, rows, &all_rows)) misshapen(view, "fewer rows");
  check_payload(view, all_rows, matrix.row_bytes);
  matrix.data = view.data.data();
  matrix.rows = rows;
  matrix.cols = cols;
  count(view);
  return matrix;
}

Matrix Weights::bare_matrix(const std::string& name, std::size_t rows, std::size_t cols) {
  const std::string shape = fmt::format("[{}, {}]", rows, cols);
  const TensorView& view = require(name + ".weight", shape);
  const bool one_row = view.ndim == 1 && rows == 1 && view.shape[0] == cols;
  if (!one_row && (view.ndim != 2 || view.shape[0] != rows || view.shape[1] != cols)) misshapen(view, shape);
  return bind(view, 1, rows, cols);
}

Matrix Weights::matrix(const std::string& name, std::size_t rows, std::size_t cols, Bias bias) {
  Matrix matrix = bare_matrix(name, rows, cols);
  if (const float* scale = optional_vector(name + ".scale", 1)) matrix.scale = *scale;
  matrix.bias = bias == Bias::kRequired ? vector(name + ".bias", rows) : optional_vector(name + ".bias", rows);
  return matrix;
}

MatrixBank Weights::bank(const std::string& name, std::size_t experts, std::size_t rows, std::size_t cols) {
  const std::string shape = fmt::format("[{}, {}, {}]", experts, rows, cols);
  const TensorView& view = require(name + ".weight", shape);
  if (view.ndim != 3 || view.shape[0] != experts || view.shape[1] != rows || view.shape[2] != cols)
    misshapen(view, shape);
  MatrixBank bank;
  bank.count = experts;
  bank.first = bind(view, experts, rows, cols);
  if (contains(name + ".bias")) bank.first.bias = vectors(name + ".bias", experts, rows);
  bank.scales = optional_vector(name + ".scale", experts);
  return bank;
}

LookupTable Weights::table(const std::string& name, std::size_t cols) {
  const std::string shape = fmt::format("[rows, {}]", cols);
  const TensorView& view = require(name + ".weight", shape);
  if (view.ndim != 2 || view.shape[0] == 0 || view.shape[1] != cols) misshapen(view, shape);
  const kernels::Format& stored = format(view);
  LookupTable table;
  table.row_bytes = row_bytes(view, stored, cols);
  table.rows = static_cast<std::size_t>(view.shape[0]);
  check_payload(view, table.rows, table.row_bytes);
  table.data = view.data.data();
  table.cols = cols;
  table.decode = stored.decode;
  count(view);
  return table;
}

const float* Weights::vector(const std::string& tensor, std::size_t n) {
  const std::string shape = fmt::format("[{}]", n);
  const TensorView& view = require(tensor, shape);
  if (view.elements() != n || view.cols() != n) misshapen(view, shape);
  return values(view, n);
}

const float* Weights::values_of(const std::string& tensor, std::size_t n) {
  const std::string shape = fmt::format("of {} values", n);
  const TensorView& view = require(tensor, shape);
  if (view.elements() != n) misshapen(view, shape);
  return values(view, n);
}

const float* Weights::vectors(const std::string& tensor, std::size_t rows, std::size_t cols) {
  const std::string shape = fmt::format("[{}, {}]", rows, cols);
  const TensorView& view = require(tensor, shape);
  if (view.ndim != 2 || view.shape[0] != rows || view.shape[1] != cols) misshapen(view, shape);
  return values(view, rows * cols);
}

const float* Weights::values(const TensorView& view, std::size_t n) {
  const kernels::Format& stored = format(view);
  check_payload(view, 1, row_bytes(view, stored, n));
  count(view);
  const bool aligned = reinterpret_cast<std::uintptr_t>(view.data.data()) % alignof(float) == 0;
  if (stored.type == StorageType::kF32 && aligned) return reinterpret_cast<const float*>(view.data.data());
  std::vector<float> decoded(n);
  stored.decode(view.data.data(), decoded.data(), n);
  return keep(std::move(decoded));
}

const float* Weights::optional_vector(const std::string& tensor, std::size_t n) {
  return contains(tensor) ? vector(tensor, n) : nullptr;
}

const float* Weights::keep(std::vector<float> values) {
  owned_.push_back(std::move(values));
  return owned_.back().data();
}

void Weights::leave_out(const std::string& tensor) {
  if (const TensorView* view = reader_.find(tensor)) used_.insert(view->name);
}

std::vector<std::string> Weights::unused() const {
  std::vector<std::string> names;
  for (const TensorView& view : reader_.tensors()) {
    if (!used_.contains(view.name)) names.emplace_back(view.name);
  }
  return names;
}

}  // namespace hk::models
