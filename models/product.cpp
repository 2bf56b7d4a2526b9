// Matrix products of a forward pass (see product.h).
#include "models/product.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace hk::models {

using kernels::ActivationFormat;

namespace {

constexpr std::size_t kRowUnit = 32;       // weight rows a kernel likes to take together (kernels.h)
constexpr std::size_t kChunksAThread = 8;  // enough for a slow core to hand over work, few enough to be cheap
// Reading and unpacking a weight row costs about as much as multiplying it with this many activation rows.
constexpr std::size_t kRowsAReadingCosts = 4;

/// Workers that keep step each walk through a stretch of their own: what a chunk asked for ahead is then the same
/// worker's next one.
std::size_t chunk_of_walk(std::size_t number, std::size_t chunks, std::size_t walks) {
  const std::size_t walk = number % walks;
  return walk * (chunks / walks) + std::min(walk, chunks % walks) + number / walks;
}

}  // namespace

void PreparedRows::choose(std::initializer_list<const Matrix*> matrices) {
  use_float_ = use_q8x32_ = use_q8x256_ = false;
  for (const Matrix* matrix : matrices) {
    if (!*matrix) continue;
    use_q8x32_ |= matrix->activation == ActivationFormat::kQ8x32;
    use_q8x256_ |= matrix->activation == ActivationFormat::kQ8x256;
    use_float_ |= matrix->activation == ActivationFormat::kF32;
  }
}

void PreparedRows::grow(std::size_t n, std::size_t cols) {
  const auto make_room = [&](engine::AlignedBuffer<std::byte>& buffer, ActivationFormat format) {
    const std::size_t bytes = n * kernels::activation_layout(format, cols).stride;
    if (bytes > buffer.size()) buffer = engine::AlignedBuffer<std::byte>(bytes, "quantized activations");
  };
  if (use_q8x32_) make_room(q8x32_, ActivationFormat::kQ8x32);
  if (use_q8x256_) make_room(q8x256_, ActivationFormat::kQ8x256);
}

void PreparedRows::begin(const Rows& x, std::initializer_list<const Matrix*> matrices) {
  x_ = x;
  choose(matrices);
  grow(x.n, x.cols);
}

void PreparedRows::prepare_row(std::size_t i) {
  const auto quantize = [&](engine::AlignedBuffer<std::byte>& buffer, ActivationFormat format) {
    kernels_.quantize_row(format, x_[i], x_.cols,
                          buffer.data() + i * kernels::activation_layout(format, x_.cols).stride);
  };
  if (use_q8x32_) quantize(q8x32_, ActivationFormat::kQ8x32);
  if (use_q8x256_) quantize(q8x256_, ActivationFormat::kQ8x256);
}

bool PreparedRows::take_floats(std::initializer_list<const Matrix*> matrices) {
  return std::ranges::any_of(
      matrices, [](const Matrix* matrix) { return *matrix && matrix->activation == ActivationFormat::kF32; });
}

void PreparedRows::prepare_part(std::size_t i, std::size_t first, std::size_t cols, const float* x) {
  constexpr std::size_t kRecordBytes = 512;  // of kPartCols columns, in any format
  static_assert(kernels::activation_layout(ActivationFormat::kQ8x32, kPartCols).stride <= kRecordBytes);
  static_assert(kernels::activation_layout(ActivationFormat::kQ8x256, kPartCols).stride <= kRecordBytes);
  const auto quantize = [&](engine::AlignedBuffer<std::byte>& buffer, ActivationFormat format, std::size_t block,
                            std::size_t sums, std::size_t sums16) {
    const kernels::ActivationLayout all = kernels::activation_layout(format, x_.cols);
    const kernels::ActivationLayout own = kernels::activation_layout(format, cols);
    alignas(64) std::byte part[kRecordBytes];
    kernels_.quantize_row(format, x, cols, part);
    std::byte* row = buffer.data() + i * all.stride;
    const std::size_t before = first / block, blocks = cols / block;
    std::memcpy(row + first, part, cols);
    std::memcpy(row + all.scales + before * sizeof(float), part + own.scales, blocks * sizeof(float));
    std::memcpy(row + all.sums + before * sums, part + own.sums, blocks * sums);
    if (sums16 != 0) std::memcpy(row + all.sums16 + before * sums16, part + own.sums16, blocks * sums16);
    if (first + cols != x_.cols) return;
    const std::size_t end = sums16 != 0 ? all.sums16 + (before + blocks) * sums16 : all.sums + (before + blocks) * sums;
    std::memset(row + end, 0, all.stride - end);
  };
  if (use_q8x32_) quantize(q8x32_, ActivationFormat::kQ8x32, 32, sizeof(std::int32_t), 2 * sizeof(std::int16_t));
  if (use_q8x256_) quantize(q8x256_, ActivationFormat::kQ8x256, 256, kernels::kSuperSums * sizeof(std::int16_t), 0);
  if (use_float_) std::memcpy(x_[i] + first, x, cols * sizeof(float));
}

void PreparedRows::begin_picked(const PreparedRows& from, std::size_t n,
                                std::initializer_list<const Matrix*> matrices) {
  choose(matrices);
  x_ = use_float_ ? floats_.shape(n, from.x_.cols) : Rows{nullptr, 0, n, from.x_.cols};
  grow(n, from.x_.cols);
}

void PreparedRows::pick_row(std::size_t i, const PreparedRows& from, std::size_t j) {
  const auto copy = [&](engine::AlignedBuffer<std::byte>& into, const engine::AlignedBuffer<std::byte>& source,
                        ActivationFormat format) {
    const std::size_t stride = kernels::activation_layout(format, x_.cols).stride;
    std::memcpy(into.data() + i * stride, source.data() + j * stride, stride);
  };
  if (use_q8x32_) copy(q8x32_, from.q8x32_, ActivationFormat::kQ8x32);
  if (use_q8x256_) copy(q8x256_, from.q8x256_, ActivationFormat::kQ8x256);
  if (use_float_) std::memcpy(x_[i], from.x_[j], x_.cols * sizeof(float));
}

const void* PreparedRows::record(ActivationFormat format, std::size_t i) const {
  switch (format) {
    case ActivationFormat::kQ8x32:
      return q8x32_.data() + i * kernels::activation_layout(format, x_.cols).stride;
    case ActivationFormat::kQ8x256:
      return q8x256_.data() + i * kernels::activation_layout(format, x_.cols).stride;
    case ActivationFormat::kF32:
    case ActivationFormat::kNone:
      break;
  }
  return x_[i];
}

void Products::reserve(std::size_t products) {
  list_.reserve(products);
  first_chunk_.reserve(products + 1);
}

void Products::add(const Matrix& matrix, const PreparedRows& input, const Rows& out, float softcap) {
  add_part(matrix, input, 0, input.rows().n, out.data, out.stride, softcap);
}

void Products::add_part(const Matrix& matrix, const PreparedRows& input, std::size_t first, std::size_t n, float* out,
                        std::size_t out_stride, float softcap) {
  if (!matrix || n == 0) return;
  list_.push_back({matrix, &input, first, n, out, out_stride, softcap, 0});
}

engine::StageWork work_of(const Matrix& matrix, std::size_t n) {
  engine::StageWork work;
  work.bytes = matrix.rows * matrix.row_bytes;
  const std::uint64_t macs = static_cast<std::uint64_t>(matrix.rows) * matrix.cols * n;
  (matrix.activation == ActivationFormat::kF32 ? work.float_macs : work.integer_macs) = macs;
  return work;
}

void Products::run(std::string_view stage) {
  if (list_.empty()) return;
  engine::StageTimer timer(stage, kernels::storage_type_name(list_.front().matrix.type));
  if (timer.listening()) {
    for (const Product& product : list_) timer.add(work_of(product.matrix, product.n));
  }
  double total = 0;
  const auto row_cost = [](const Product& product) {
    return static_cast<double>(product.matrix.cols) * static_cast<double>(product.n + kRowsAReadingCosts);
  };
  for (const Product& product : list_) total += row_cost(product) * static_cast<double>(product.matrix.rows);
  const double chunk_cost = total / static_cast<double>(static_cast<std::size_t>(pool_.threads()) * kChunksAThread);
  first_chunk_.clear();
  first_chunk_.push_back(0);
  for (Product& product : list_) {
    const auto rows = static_cast<std::size_t>(std::max(1.0, chunk_cost / row_cost(product)));
    // Of a prompt, whole units downwards: 9 chunks on two threads would leave one of them idle for a tenth of the time.
    // A chunk that is read as fast as memory gives it is shorter than that, and hand-outs would show.
    const std::size_t wanted = std::min(rows, product.matrix.rows);
    product.chunk_rows = product.n > kernels::kStreamedRows ? std::max(kRowUnit, wanted / kRowUnit * kRowUnit)
                                                            : kernels::round_up(wanted, kRowUnit);
    first_chunk_.push_back(first_chunk_.back() + (product.matrix.rows + product.chunk_rows - 1) / product.chunk_rows);
  }
  const std::size_t chunks = first_chunk_.back(), walks = static_cast<std::size_t>(pool_.threads());
  pool_.run(chunks, [&](std::size_t number, int) {
    const std::size_t chunk = chunk_of_walk(number, chunks, walks);
    const auto which =
        static_cast<std::size_t>(std::ranges::upper_bound(first_chunk_, chunk) - first_chunk_.begin()) - 1;
    const Product& product = list_[which];
    const std::size_t first_row = (chunk - first_chunk_[which]) * product.chunk_rows;
    multiply(product, first_row, std::min(product.chunk_rows, product.matrix.rows - first_row));
  });
  list_.clear();
}

void multiply_part(const kernels::KernelTable& kernels, const ProductPart& part) {
  const Matrix& matrix = part.matrix;
  kernels::MatmulArgs args;
  args.weights = matrix.data + part.first_row * matrix.row_bytes;
  args.weight_stride = matrix.row_bytes;
  args.rows = part.rows;
  args.cols = matrix.cols;
  args.activations = part.input.record(matrix.activation, part.first);
  args.activation_stride = matrix.activation == ActivationFormat::kF32
                               ? part.input.rows().stride * sizeof(float)
                               : kernels::activation_layout(matrix.activation, matrix.cols).stride;
  args.n = part.n;
  args.out = part.out;
  args.out_stride = part.out_stride;
  matrix.multiply(args);

  if (matrix.scale == 1.0F && matrix.bias == nullptr) return;
  for (std::size_t i = 0; i < part.n; ++i) {
    float* out = part.out + i * part.out_stride;
    if (matrix.scale != 1.0F) kernels.scale(out, matrix.scale, part.rows);
    if (matrix.bias != nullptr) kernels.add(out, matrix.bias + part.first_row, part.rows);
  }
}

void Products::multiply(const Product& product, std::size_t first_row, std::size_t rows) const {
  float* first_out = product.out + first_row;
  multiply_part(kernels_, {product.matrix, *product.input, first_row, rows, product.first, product.n, first_out,
                           product.out_stride});
  if (product.softcap == 0) return;
  for (std::size_t i = 0; i < product.n; ++i) {
    float* out = first_out + i * product.out_stride;
    for (std::size_t r = 0; r < rows; ++r) out[r] = product.softcap * std::tanh(out[r] / product.softcap);
  }
}

}  // namespace hk::models
