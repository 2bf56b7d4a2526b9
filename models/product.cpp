// Matrix products of a forward pass (see product.h).
#include "models/product.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace hk::models {

using kernels::ActivationFormat;

namespace {

constexpr std::size_t kMaxProducts = 8;    // more matrices than any group that shares an input
constexpr std::size_t kRowUnit = 32;       // weight rows a kernel likes to take together (kernels.h)
constexpr std::size_t kChunksAThread = 8;  // enough for a slow core to hand over work, few enough to be cheap

}  // namespace

void Products::begin(const Rows& x, std::initializer_list<const Matrix*> matrices) {
  x_ = x;
  use_q8x32_ = use_q8x256_ = false;
  for (const Matrix* matrix : matrices) {
    if (!*matrix) continue;
    use_q8x32_ |= matrix->activation == ActivationFormat::kQ8x32;
    use_q8x256_ |= matrix->activation == ActivationFormat::kQ8x256;
  }
  const auto grow = [&](engine::AlignedBuffer<std::byte>& buffer, ActivationFormat format) {
    const std::size_t bytes = x.n * kernels::activation_layout(format, x.cols).stride;
    if (bytes > buffer.size()) buffer = engine::AlignedBuffer<std::byte>(bytes, "quantized activations");
  };
  if (use_q8x32_) grow(q8x32_, ActivationFormat::kQ8x32);
  if (use_q8x256_) grow(q8x256_, ActivationFormat::kQ8x256);
}

void Products::prepare_row(std::size_t i) {
  const auto quantize = [&](engine::AlignedBuffer<std::byte>& buffer, ActivationFormat format) {
    kernels_.quantize_row(format, x_[i], x_.cols,
                          buffer.data() + i * kernels::activation_layout(format, x_.cols).stride);
  };
  if (use_q8x32_) quantize(q8x32_, ActivationFormat::kQ8x32);
  if (use_q8x256_) quantize(q8x256_, ActivationFormat::kQ8x256);
}

void Products::prepare_rows() {
  if (!use_q8x32_ && !use_q8x256_) return;
  for_rows(pool_, x_.n, [&](std::size_t i) { prepare_row(i); });
}

/// What the products take at least, and the format they are stored in, for a profile.
void Products::count(engine::StageTimer& timer, std::initializer_list<Product> products) const {
  for (const Product& product : products) {
    const Matrix& matrix = *product.matrix;
    if (!matrix) continue;
    engine::StageWork work;
    work.bytes = matrix.rows * matrix.row_bytes;
    const std::uint64_t macs = static_cast<std::uint64_t>(matrix.rows) * matrix.cols * x_.n;
    (matrix.activation == ActivationFormat::kF32 ? work.float_macs : work.integer_macs) = macs;
    timer.add(work);
  }
}

void Products::run(std::string_view stage, std::initializer_list<Product> products) {
  if (x_.n == 0) return;
  const auto first = std::find_if(products.begin(), products.end(), [](const Product& p) { return bool(*p.matrix); });
  if (first == products.end()) return;
  engine::StageTimer timer(stage, kernels::storage_type_name(first->matrix->type));
  if (timer.listening()) count(timer, products);
  std::array<const Product*, kMaxProducts> order{};
  std::array<std::size_t, kMaxProducts + 1> first_chunk{};
  std::size_t count = 0;
  std::size_t total_rows = 0;
  for (const Product& product : products) {
    if (*product.matrix) total_rows += product.matrix->rows;
  }
  const std::size_t parts = static_cast<std::size_t>(pool_.threads()) * kChunksAThread;
  const std::size_t chunk_rows = kernels::round_up(std::max<std::size_t>(1, total_rows / parts), kRowUnit);
  for (const Product& product : products) {
    if (!*product.matrix) continue;
    order[count] = &product;
    first_chunk[count + 1] = first_chunk[count] + (product.matrix->rows + chunk_rows - 1) / chunk_rows;
    ++count;
  }
  pool_.run(first_chunk[count], [&](std::size_t chunk, int) {
    std::size_t which = 0;
    while (chunk >= first_chunk[which + 1]) ++which;
    const std::size_t first_row = (chunk - first_chunk[which]) * chunk_rows;
    multiply(*order[which], first_row, std::min(chunk_rows, order[which]->matrix->rows - first_row));
  });
}

void Products::multiply(const Product& product, std::size_t first_row, std::size_t rows) const {
  const Matrix& matrix = *product.matrix;
  kernels::MatmulArgs args;
  args.weights = matrix.data + first_row * matrix.row_bytes;
  args.weight_stride = matrix.row_bytes;
  args.rows = rows;
  args.cols = matrix.cols;
  switch (matrix.activation) {
    case ActivationFormat::kQ8x32:
      args.activations = q8x32_.data();
      break;
    case ActivationFormat::kQ8x256:
      args.activations = q8x256_.data();
      break;
    case ActivationFormat::kF32:
    case ActivationFormat::kNone:
      args.activations = x_.data;
      break;
  }
  args.activation_stride = kernels::activation_layout(matrix.activation, matrix.cols).stride;
  args.n = x_.n;
  args.out = product.out + first_row;
  args.out_stride = product.out_stride;
  matrix.multiply(args);

  if (matrix.scale == 1.0F && matrix.bias == nullptr && product.softcap == 0) return;
  for (std::size_t i = 0; i < x_.n; ++i) {
    float* out = args.out + i * product.out_stride;
    if (matrix.scale != 1.0F) kernels_.scale(out, matrix.scale, rows);
    if (matrix.bias != nullptr) kernels_.add(out, matrix.bias + first_row, rows);
    if (product.softcap == 0) continue;
    for (std::size_t r = 0; r < rows; ++r) out[r] = product.softcap * std::tanh(out[r] / product.softcap);
  }
}

}  // namespace hk::models
