// Self check, part one: activation records and the matrix kernel of every weight format.
#include <cstring>
#include <new>

#include "kernels/activation.h"
#include "kernels/quant/format.h"
#include "kernels/self_check_parts.h"

namespace hk::kernels::check {
namespace {

constexpr std::size_t kRows = 37;        // a panel of any level and a rest
constexpr std::size_t kActivations = 7;  // full tiles of any level and a rest
constexpr std::align_val_t kAlignment{64};

/// Activation records on the alignment that the kernels ask for.
class Records {
 public:
  Records(const KernelTable& table, ActivationFormat format, std::size_t cols, const std::vector<float>& x)
      : format_(format), layout_(activation_layout(format, cols)) {
    data_ = static_cast<std::uint8_t*>(::operator new(layout_.stride* kActivations, kAlignment));
    std::memset(data_, 0xA5, layout_.stride * kActivations);  // padding must be written, too
    for (std::size_t i = 0; i < kActivations; ++i) table.quantize_row(format, x.data() + i * cols, cols, record(i));
  }
  ~Records() { ::operator delete(data_, kAlignment); }
  Records(const Records&) = delete;
  Records& operator=(const Records&) = delete;

  std::uint8_t* record(std::size_t i) { return data_ + i * layout_.stride; }
  const std::uint8_t* record(std::size_t i) const { return data_ + i * layout_.stride; }
  const ActivationLayout& layout() const { return layout_; }
  std::size_t group() const { return format_ == ActivationFormat::kQ8x32 ? 32 : 256; }
  template <typename T>
  T at(std::size_t i, std::size_t offset) const {
    T value;
    std::memcpy(&value, record(i) + offset, sizeof value);
    return value;
  }
  int code(std::size_t i, std::size_t k) const { return at<std::int8_t>(i, k); }
  float scale(std::size_t i, std::size_t k) const { return at<float>(i, layout_.scales + k / group() * sizeof(float)); }
  /// What a kernel sees in place of x[k].
  double value(std::size_t i, std::size_t k) const {
    if (format_ == ActivationFormat::kF32) return at<float>(i, k * sizeof(float));
    return double{scale(i, k)} * code(i, k);
  }

 private:
  ActivationFormat format_;
  ActivationLayout layout_;
  std::uint8_t* data_;
};

int sum_of_codes(const Records& records, std::size_t i, std::size_t from, std::size_t count) {
  int sum = 0;
  for (std::size_t k = from; k < from + count; ++k) sum += records.code(i, k);
  return sum;
}

/// Codes and sums must be exact: the integers are promised to be the same on all levels.
Result check_group(const char* name, const Records& records, std::size_t i, std::size_t first, const float* x) {
  const std::size_t count = records.group();
  float peak = 0;
  for (std::size_t k = 0; k < count; ++k) peak = std::fmax(peak, std::fabs(x[k]));
  const float inverse = peak > 0 ? 127.0F / peak : 0.0F;
  double along = 0, squares = 0;
  for (std::size_t k = 0; k < count; ++k) {
    const float code = std::nearbyint(x[k] * inverse);
    if (auto wrong = compare(name, "code " + std::to_string(first + k), records.code(i, first + k), code, 0))
      return wrong;
    along += double{x[k]} * double{code};
    squares += double{code} * double{code};
  }
  const double fitted = squares > 0 ? along / squares : 0;
  const double scale = count == 32 ? fitted : double{peak} / 127;
  const std::string place = "group " + std::to_string(first / count);
  if (auto wrong = compare(name, "scale of " + place, records.scale(i, first), scale, 1e-5 * scale)) return wrong;
  const ActivationLayout& layout = records.layout();
  if (count == 32) {
    const auto sum = records.at<std::int32_t>(i, layout.sums + first / 32 * sizeof(std::int32_t));
    if (auto wrong = compare(name, "sum of " + place, sum, sum_of_codes(records, i, first, 32), 0)) return wrong;
    for (std::size_t half = 0; half < 2; ++half) {
      const auto part = records.at<std::int16_t>(i, layout.sums16 + (first / 16 + half) * sizeof(std::int16_t));
      if (auto wrong = compare(name, "half sum of " + place, part, sum_of_codes(records, i, first + 16 * half, 16), 0))
        return wrong;
    }
    return std::nullopt;
  }
  for (std::size_t s = 0; s < kSuperSums; ++s) {
    int expected = 0;
    if (s < kSumsOf32) {
      expected = sum_of_codes(records, i, first + 16 * (s - kSumsOf16), 16);
    } else if (s < kSumOf256) {
      expected = sum_of_codes(records, i, first + 32 * (s - kSumsOf32), 32);
    } else if (s == kSumOf256) {
      expected = sum_of_codes(records, i, first, 256);
    }
    const auto sum = records.at<std::int16_t>(i, layout.sums + (first / 256 * kSuperSums + s) * sizeof(std::int16_t));
    if (auto wrong = compare(name, "sum " + std::to_string(s) + " of " + place, sum, expected, 0)) return wrong;
  }
  return std::nullopt;
}

Result check_records(const KernelTable& table, ActivationFormat format, const char* name) {
  const std::size_t cols = 768;
  SampleRandom random(11);
  std::vector<float> x = values(kActivations * cols, random, 3.0F);
  for (std::size_t k = 0; k < 256; ++k) x[k] = 0;  // a group of zeros has no scale
  const Records records(table, format, cols, x);
  const ActivationLayout& layout = records.layout();
  for (std::size_t i = 0; i < kActivations; ++i) {
    const float* row = x.data() + i * cols;
    std::size_t used = cols * sizeof(float);
    if (format == ActivationFormat::kF32) {
      if (std::memcmp(records.record(i), row, used) != 0) return Disagreement{name, "values were not copied"};
    } else {
      for (std::size_t k = 0; k < cols; k += records.group()) {
        if (auto wrong = check_group(name, records, i, k, row + k)) return wrong;
      }
      used = format == ActivationFormat::kQ8x32 ? layout.sums16 + cols / 16 * sizeof(std::int16_t)
                                                : layout.sums + cols / 256 * kSuperSums * sizeof(std::int16_t);
    }
    for (std::size_t byte = used; byte < layout.stride; ++byte) {
      if (records.record(i)[byte] != 0) return Disagreement{name, "the padding is not zero"};
    }
  }
  return std::nullopt;
}

std::size_t columns_of(const Format& format) {
  switch (format.activation) {
    case ActivationFormat::kQ8x32:
      return 384;  // twelve blocks: more than the kernels unpack at a time, and not a multiple of that
    case ActivationFormat::kQ8x256:
      return 768;
    case ActivationFormat::kF32:
    case ActivationFormat::kNone:
      break;
  }
  return 301;  // chunks, then units, then single columns
}

Result check_matmul(const KernelTable& table, const Format& format) {
  const std::string name = "matmul " + std::string(format.name);
  const MatmulFn multiply = table.matmul(format.type);
  if (multiply == nullptr) return Disagreement{name, "the level has none"};
  const std::size_t cols = columns_of(format), blocks = cols / format.block_elements;
  const std::size_t row_bytes = blocks * format.block_bytes;
  SampleRandom random(100 + static_cast<std::uint64_t>(format.type));
  std::vector<std::uint8_t> weights(kRows * row_bytes);
  if (!fill_sample_blocks(format, weights.data(), kRows * blocks, random))
    return Disagreement{name, "there are no sample weights for it"};
  std::vector<float> w(kRows * cols);
  format.decode(weights.data(), w.data(), w.size());
  const Records records(table, format.activation, cols, values(kActivations * cols, random));

  constexpr std::size_t kStride = kRows + 2;
  std::vector<float> out(kActivations * kStride, kGuard), one(kStride, kGuard);
  MatmulArgs args{weights.data(),          row_bytes,    kRows,      cols,   records.record(0),
                  records.layout().stride, kActivations, out.data(), kStride};
  multiply(args);
  for (std::size_t i = 0; i < kActivations; ++i) {
    std::vector<double> x(cols);
    for (std::size_t k = 0; k < cols; ++k) x[k] = records.value(i, k);
    for (std::size_t r = 0; r < kRows; ++r) {
      double expected = 0, magnitude = 0;
      for (std::size_t k = 0; k < cols; ++k) {
        const double product = double{w[r * cols + k]} * x[k];
        expected += product;
        magnitude += std::fabs(product);
      }
      const std::string place = "row " + std::to_string(r) + ", activation " + std::to_string(i);
      // f32 sums of a few dozen terms
      if (auto wrong = compare(name.c_str(), place, out[i * kStride + r], expected, 2e-6 * magnitude)) return wrong;
    }
    for (std::size_t r = kRows; r < kStride; ++r) {
      if (out[i * kStride + r] != kGuard) return Disagreement{name, "it writes past the rows"};
    }
    args.n = 1;
    args.activations = records.record(i);
    args.out = one.data();
    multiply(args);
    if (std::memcmp(one.data(), out.data() + i * kStride, kStride * sizeof(float)) != 0)
      return Disagreement{name, "one activation row alone gives other bits than among seven"};
  }
  return std::nullopt;
}

}  // namespace

Result matrices(const KernelTable& table) {
  if (auto wrong = check_records(table, ActivationFormat::kF32, "quantize_row f32")) return wrong;
  if (auto wrong = check_records(table, ActivationFormat::kQ8x32, "quantize_row q8x32")) return wrong;
  if (auto wrong = check_records(table, ActivationFormat::kQ8x256, "quantize_row q8x256")) return wrong;
  for (const Format& format : formats()) {
    if (format.activation == ActivationFormat::kNone) continue;
    if (auto wrong = check_matmul(table, format)) return wrong;
  }
  return std::nullopt;
}

}  // namespace hk::kernels::check
