// Matrix kernels of every usable ISA level against float64 references: the fixtures, odd sizes, random blocks, and the
// promise that one activation row and many give the same bits.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "tests/support/fixtures.h"

namespace hk::kernels {
namespace {

/// 64-byte aligned activation records.
class Records {
 public:
  Records(const KernelTable& table, ActivationFormat format, std::size_t cols, const std::vector<float>& x)
      : layout_(activation_layout(format, cols)), rows_(cols == 0 ? 0 : x.size() / cols) {
    storage_.resize(layout_.stride * rows_ + 64);
    base_ = storage_.data();
    while (reinterpret_cast<std::uintptr_t>(base_) % 64 != 0) ++base_;
    for (std::size_t i = 0; i < rows_; ++i) {
      std::uint8_t* record = base_ + i * layout_.stride;
      table.quantize_row(format, x.data() + i * cols, cols, record);
      // float records are often a model's own rows, with anything behind them: here no numbers
      if (format == ActivationFormat::kF32) std::memset(record + 4 * cols, 0xFF, layout_.stride - 4 * cols);
    }
  }
  const std::uint8_t* data() const { return base_; }
  const ActivationLayout& layout() const { return layout_; }

  /// The activations as the kernel sees them.
  std::vector<float> decoded(ActivationFormat format, std::size_t cols) const {
    std::vector<float> out;
    for (std::size_t i = 0; i < rows_; ++i) {
      const std::uint8_t* record = base_ + i * layout_.stride;
      for (std::size_t k = 0; k < cols; ++k) {
        float value = 0;
        if (format == ActivationFormat::kF32) {
          std::memcpy(&value, record + 4 * k, 4);
        } else {
          const std::size_t group = format == ActivationFormat::kQ8x32 ? 32 : 256;
          float scale;
          std::memcpy(&scale, record + layout_.scales + k / group * 4, 4);
          value = scale * static_cast<float>(static_cast<std::int8_t>(record[k]));
        }
        out.push_back(value);
      }
    }
    return out;
  }

 private:
  ActivationLayout layout_;
  std::size_t rows_;
  std::vector<std::uint8_t> storage_;
  std::uint8_t* base_;
};

/// Random blocks with finite, moderate scales: random values through the exact encoder where there is one, else random
/// bytes with the scale fields cleaned by decoding and rejecting.
std::vector<std::uint8_t> random_weights(const Format& format, std::size_t elements, std::mt19937& random) {
  const std::size_t blocks = elements / format.block_elements;
  std::vector<std::uint8_t> bytes(blocks * format.block_bytes);
  std::vector<float> decoded(format.block_elements);
  for (std::size_t b = 0; b < blocks; ++b) {
    std::uint8_t* block = bytes.data() + b * format.block_bytes;
    for (;;) {
      for (std::uint32_t i = 0; i < format.block_bytes; ++i) block[i] = static_cast<std::uint8_t>(random());
      format.decode(block, decoded.data(), format.block_elements);
      bool usable = true;
      for (const float v : decoded) usable = usable && std::isfinite(v) && std::fabs(v) < 1e6F;
      if (usable) break;
    }
  }
  return bytes;
}

struct Case {
  const KernelTable* table;
  const Format* format;
};

class Matmul : public testing::TestWithParam<Case> {
 protected:
  void check(std::size_t rows, std::size_t cols, std::size_t n, std::mt19937& random) {
    const auto& [table, format] = GetParam();
    SCOPED_TRACE(std::to_string(rows) + " rows, " + std::to_string(cols) + " columns, " + std::to_string(n) +
                 " activations");
    const auto weights = random_weights(*format, rows * cols, random);
    std::vector<float> w(rows * cols);
    if (!w.empty()) format->decode(weights.data(), w.data(), w.size());
    std::vector<float> x(n * cols);
    std::normal_distribution<float> normal;
    for (float& v : x) v = normal(random);
    const ActivationFormat activation = activation_of(format->type);
    const Records records(*table, activation, cols, x);
    const auto seen = records.decoded(activation, cols);
    const std::size_t out_stride = rows + 3;
    constexpr float kUntouched = -12345.0F;
    std::vector<float> out(n * out_stride + 1, kUntouched);
    const MatmulArgs args{weights.data(),
                          cols / format->block_elements * format->block_bytes,
                          rows,
                          cols,
                          records.data(),
                          records.layout().stride,
                          n,
                          out.data(),
                          out_stride};
    table->matmul(format->type)(args);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t r = 0; r < rows; ++r) {
        double expected = 0, magnitude = 0;
        for (std::size_t k = 0; k < cols; ++k) {
          const double product = double{w[r * cols + k]} * double{seen[i * cols + k]};
          expected += product;
          magnitude += std::fabs(product);
        }
        const float got = out[i * out_stride + r];
        ASSERT_TRUE(std::isfinite(got)) << "row " << r << ", activation " << i;
        // f32 sums of a few hundred terms, each rounded once or twice
        ASSERT_NEAR(got, expected, 2e-6 * magnitude + 1e-30) << "row " << r << ", activation " << i;
      }
      for (std::size_t r = rows; r < out_stride; ++r)
        ASSERT_EQ(out[i * out_stride + r], kUntouched) << "written past the rows";
    }
    // one activation at a time, and rows in two calls: same bits
    std::vector<float> single(rows + 1, kUntouched);
    for (std::size_t i = 0; i < n; ++i) {
      MatmulArgs one = args;
      one.activations = records.data() + i * records.layout().stride;
      one.n = 1;
      one.out = single.data();
      const std::size_t cut = rows / 3;
      one.rows = cut;
      table->matmul(format->type)(one);
      one.weights = weights.data() + cut * args.weight_stride;
      one.rows = rows - cut;
      one.out = single.data() + cut;
      table->matmul(format->type)(one);
      ASSERT_EQ(std::memcmp(single.data(), out.data() + i * out_stride, rows * sizeof(float)), 0) << "activation " << i;
    }
  }
};

TEST_P(Matmul, AgreesWithReferenceForAllShapes) {
  std::mt19937 random(7);
  const std::size_t block = GetParam().format->block_elements;
  const std::size_t unit = block == 1 ? 1 : block;
  for (std::size_t rows = 1; rows <= 67; rows += rows < 34 ? 1 : 11) check(rows, unit * 3, 1 + rows % 5, random);
  for (std::size_t n = 1; n <= 33; n += n < 18 ? 1 : 5) check(19, unit, n, random);
  check(3, unit, 515, random);   // more than one batch
  check(1, 10240, 110, random);  // of long rows, fewer make one
  for (std::size_t cols = 1; cols <= 9; ++cols) check(5, unit * cols, 2, random);
  for (const std::size_t blocks : {17, 40}) check(33, (block == 1 ? 33 : 1) * unit * blocks, 3, random);
  check(0, unit, 2, random);
  check(3, unit, 0, random);
}

TEST_P(Matmul, ErrorIsNoLargerThanThatOfTheReferenceImplementation) {
  const auto& [table, format] = GetParam();
  // the fixture has none: nothing is rounded there, or models alone are references
  if (format->type == StorageType::kF32 || !format->in_hk) return;
  const std::string name(format->name);
  HK_FIXTURE(folder, "fixtures/quants/dot");
  constexpr std::size_t kRows = 64, kCols = 1024, kVectors = 8;
  const auto weights = test::read_file(folder / (name + ".w.bin"));
  const auto x = test::read_array<float>(folder / "x.f32.bin");
  const auto reference = test::read_array<double>(folder / (name + ".ref.f64.bin"));
  const auto other = test::read_array<float>(folder / (name + ".ggml.f32.bin"));
  ASSERT_EQ(reference.size(), kRows * kVectors);
  const Records records(*table, activation_of(format->type), kCols, x);
  std::vector<float> out(kRows * kVectors);
  table->matmul(format->type)({weights.data(), weights.size() / kRows, kRows, kCols, records.data(),
                               records.layout().stride, kVectors, out.data(), kRows});
  double ours = 0, theirs = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    ASSERT_TRUE(std::isfinite(out[i])) << i;
    ours += (out[i] - reference[i]) * (out[i] - reference[i]);
    theirs += (other[i] - reference[i]) * (other[i] - reference[i]);
  }
  RecordProperty("error_ratio", std::to_string(std::sqrt(ours / theirs)));
  std::printf("%s %s: error %.4f of the reference implementation's\n", std::string(table->level).c_str(), name.c_str(),
              std::sqrt(ours / theirs));
  // with 256 elements a scale both round alike: the order of the last float sums decides between 0.9999 and 1.0001
  EXPECT_LE(std::sqrt(ours), std::sqrt(theirs) * 1.0001);
}

TEST_P(Matmul, NanInActivationsShowsInTheResult) {
  const auto& [table, format] = GetParam();
  std::mt19937 random(3);
  const std::size_t cols = format->block_elements == 1 ? 16 : format->block_elements * 2;
  const auto weights = random_weights(*format, 2 * cols, random);
  for (const float bad : {std::nanf(""), INFINITY, -INFINITY}) {
    std::vector<float> x(cols, 0.5F);
    x[cols - 1] = bad;
    const Records records(*table, activation_of(format->type), cols, x);
    float out[2] = {0, 0};
    table->matmul(format->type)({weights.data(), cols / format->block_elements * format->block_bytes, 2, cols,
                                 records.data(), records.layout().stride, 1, out, 2});
    EXPECT_FALSE(std::isfinite(out[0])) << bad;
  }
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const KernelTable* table : usable_levels()) {
    for (const Format& format : formats()) {
      if (table->matmul(format.type) != nullptr) cases.push_back({table, &format});
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Levels, Matmul, testing::ValuesIn(all_cases()), [](const auto& param_info) {
  return std::string(param_info.param.table->level) + "_" + std::string(param_info.param.format->name);
});

TEST(Activations, CodesAreTheSameOnEveryLevel) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal;
  for (const ActivationFormat format : {ActivationFormat::kQ8x32, ActivationFormat::kQ8x256}) {
    for (const float scale : {1.0F, 1e-30F, 1e30F, 1e-38F, 0.0F}) {
      std::vector<float> x(1024);
      for (float& v : x) v = normal(random) * scale;
      x[5] = -0.0F;
      const ActivationLayout layout = activation_layout(format, x.size());
      std::vector<std::uint8_t> first(layout.stride);
      for (const KernelTable* table : usable_levels()) {
        std::vector<std::uint8_t> record(layout.stride, 0xEE);
        table->quantize_row(format, x.data(), x.size(), record.data());
        if (table == usable_levels().front()) first = record;
        SCOPED_TRACE(std::string(table->level) + ", scale " + std::to_string(scale));
        EXPECT_TRUE(std::equal(record.begin(), record.begin() + layout.scales, first.begin())) << "codes";
        EXPECT_TRUE(std::equal(record.begin() + layout.sums, record.end(), first.begin() + layout.sums)) << "sums";
        for (std::size_t at = layout.scales; at < layout.sums; at += 4) {
          float mine, other;
          std::memcpy(&mine, record.data() + at, 4);
          std::memcpy(&other, first.data() + at, 4);
          EXPECT_NEAR(mine, other, 1e-6 * std::fabs(other));
        }
      }
    }
  }
}

TEST(Activations, RoundToNearestUnderTheBlocksScale) {
  std::vector<float> x(32);
  for (int i = 0; i < 32; ++i) x[i] = static_cast<float>(i - 16);
  x[0] = 127;
  x[1] = 0.5F;   // a tie: to even
  x[2] = -1.5F;  // a tie: to even
  for (const KernelTable* table : usable_levels()) {
    std::vector<std::uint8_t> record(activation_layout(ActivationFormat::kQ8x32, 32).stride);
    table->quantize_row(ActivationFormat::kQ8x32, x.data(), 32, record.data());
    EXPECT_EQ(static_cast<std::int8_t>(record[0]), 127);
    EXPECT_EQ(static_cast<std::int8_t>(record[1]), 0);
    EXPECT_EQ(static_cast<std::int8_t>(record[2]), -2);
    for (int i = 3; i < 32; ++i) EXPECT_EQ(static_cast<std::int8_t>(record[i]), i - 16);
  }
}

}  // namespace
}  // namespace hk::kernels
