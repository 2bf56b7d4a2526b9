// Norms, gates, rotary embedding, softmax and half stores of every usable ISA level against float64 formulas.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/quant/half.h"

namespace hk::kernels {
namespace {

class Ops : public testing::TestWithParam<const KernelTable*> {
 protected:
  std::vector<float> random_values(std::size_t n, float scale = 1) {
    std::normal_distribution<float> normal;
    std::vector<float> x(n);
    for (float& v : x) v = normal(random_) * scale;
    return x;
  }
  std::mt19937 random_{9};
  static constexpr std::size_t kSizes[] = {0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 100, 1023};
};

TEST_P(Ops, RmsNorm) {
  for (const std::size_t n : kSizes) {
    const auto x = random_values(n), weight = random_values(n);
    std::vector<float> out(n + 1, 77.0F), plain(n);
    GetParam()->rms_norm(x.data(), weight.data(), 1e-5F, n, out.data());
    GetParam()->rms_norm(x.data(), nullptr, 1e-5F, n, plain.data());
    double sum = 0;
    for (const float v : x) sum += double{v} * v;
    for (std::size_t i = 0; i < n; ++i) {
      const double expected = x[i] / std::sqrt(sum / static_cast<double>(n) + 1e-5);
      EXPECT_NEAR(out[i], expected * weight[i], 2e-6 * std::fabs(expected * weight[i]) + 1e-9);
      EXPECT_NEAR(plain[i], expected, 2e-6 * std::fabs(expected) + 1e-9);
    }
    EXPECT_EQ(out[n], 77.0F);
  }
}

TEST_P(Ops, LayerNorm) {
  for (const std::size_t n : kSizes) {
    auto x = random_values(n);
    for (float& v : x) v += 3;
    const auto weight = random_values(n), bias = random_values(n);
    std::vector<float> out(n + 1, 77.0F);
    GetParam()->layer_norm(x.data(), weight.data(), bias.data(), 1e-5F, n, out.data());
    double mean = 0, variance = 0;
    for (const float v : x) mean += v;
    mean /= static_cast<double>(n);
    for (const float v : x) variance += (v - mean) * (v - mean);
    variance /= static_cast<double>(n);
    for (std::size_t i = 0; i < n; ++i) {
      const double expected = (x[i] - mean) / std::sqrt(variance + 1e-5) * weight[i] + bias[i];
      // the mean's own rounding is magnified where the variance is nearly zero (n = 1)
      EXPECT_NEAR(out[i], expected, n == 1 ? 1e-3 : 2e-5) << n;
    }
    EXPECT_EQ(out[n], 77.0F);
  }
}

TEST_P(Ops, AddScaleAndScaledAdd) {
  for (const std::size_t n : kSizes) {
    const auto x = random_values(n), y = random_values(n);
    auto a = x, b = x, c = x;
    GetParam()->add(a.data(), y.data(), n);
    GetParam()->add_scaled(b.data(), y.data(), 0.25F, n);
    GetParam()->scale(c.data(), 3.0F, n);
    for (std::size_t i = 0; i < n; ++i) {
      EXPECT_EQ(a[i], x[i] + y[i]);
      EXPECT_NEAR(b[i], double{x[i]} + 0.25 * double{y[i]}, 1e-6);
      EXPECT_EQ(c[i], x[i] * 3.0F);
    }
  }
}

TEST_P(Ops, Gates) {
  for (const std::size_t n : kSizes) {
    auto gate = random_values(n, 8);
    if (n > 3) {
      gate[0] = 100;
      gate[1] = -100;
      gate[2] = 0;
    }
    const auto up = random_values(n);
    std::vector<float> silu(n + 1, 5.0F), gelu(n), relu2(n), silu_alone(n);
    GetParam()->silu_mul(gate.data(), up.data(), n, silu.data());
    GetParam()->silu_mul(gate.data(), nullptr, n, silu_alone.data());
    GetParam()->gelu_mul(gate.data(), up.data(), n, gelu.data());
    GetParam()->relu2_mul(gate.data(), up.data(), n, relu2.data());
    for (std::size_t i = 0; i < n; ++i) {
      const double x = gate[i], u = up[i];
      const double s = x / (1 + std::exp(-x));
      EXPECT_NEAR(silu_alone[i], s, 1e-6 * std::fabs(s) + 1e-7);
      EXPECT_NEAR(silu[i], s * u, 1e-6 * std::fabs(s * u) + 1e-6);
      const double g = 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
      EXPECT_NEAR(gelu[i], g * u, 2e-6 * std::fabs(g * u) + 2e-6);
      const double r = x > 0 ? x * x * u : 0;
      EXPECT_NEAR(relu2[i], r, 1e-6 * std::fabs(r));
    }
    EXPECT_EQ(silu[n], 5.0F);
  }
}

TEST_P(Ops, Softmax) {
  for (const std::size_t n : kSizes) {
    auto x = random_values(n, 20);
    const auto original = x;
    GetParam()->softmax(x.data(), n);
    double largest = -INFINITY, total = 0;
    for (const float v : original) largest = std::max(largest, double{v});
    for (const float v : original) total += std::exp(v - largest);
    for (std::size_t i = 0; i < n; ++i) {
      const double expected = std::exp(original[i] - largest) / total;
      EXPECT_NEAR(x[i], expected, 4e-6 * expected + 1e-37);  // the argument's rounding counts too: |score| up to 60
    }
  }
}

TEST_P(Ops, RotaryPairs) {
  constexpr std::size_t kRot = 10;
  const auto x = random_values(kRot), angle = random_values(kRot / 2);
  std::vector<float> cos(kRot / 2), sin(kRot / 2);
  for (std::size_t i = 0; i < kRot / 2; ++i) {
    cos[i] = std::cos(angle[i]);
    sin[i] = std::sin(angle[i]);
  }
  auto adjacent = x, halves = x;
  GetParam()->rope_adjacent(adjacent.data(), cos.data(), sin.data(), kRot);
  GetParam()->rope_halves(halves.data(), cos.data(), sin.data(), kRot);
  for (std::size_t i = 0; i < kRot / 2; ++i) {
    EXPECT_NEAR(adjacent[2 * i], x[2 * i] * cos[i] - x[2 * i + 1] * sin[i], 1e-6);
    EXPECT_NEAR(adjacent[2 * i + 1], x[2 * i] * sin[i] + x[2 * i + 1] * cos[i], 1e-6);
    EXPECT_NEAR(halves[i], x[i] * cos[i] - x[i + kRot / 2] * sin[i], 1e-6);
    EXPECT_NEAR(halves[i + kRot / 2], x[i] * sin[i] + x[i + kRot / 2] * cos[i], 1e-6);
  }
}

/// Every finite binary16, and floats around every rounding boundary between two of them, through the store of a value.
TEST_P(Ops, HalfStoresRoundToNearestEven) {
  std::vector<float> values;
  for (std::uint32_t h = 0; h < 0x7C00; ++h) {
    const float a = f16_to_f32(static_cast<std::uint16_t>(h)), b = f16_to_f32(static_cast<std::uint16_t>(h + 1));
    const float middle = std::isinf(b) ? 65520.0F : a + (b - a) / 2;
    for (const float v : {a, middle, std::nextafter(middle, 0.0F), std::nextafter(middle, INFINITY)}) {
      values.push_back(v);
      values.push_back(-v);
    }
  }
  values.push_back(INFINITY);
  values.push_back(1e30F);
  std::vector<std::uint16_t> page(kKvPage * values.size());
  GetParam()->store_value(values.data(), values.size(), KvType::kF16, 0, page.data());
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(page[i], f32_to_f16(values[i])) << values[i];
}

INSTANTIATE_TEST_SUITE_P(Levels, Ops, testing::ValuesIn(usable_levels().begin(), usable_levels().end()),
                         [](const auto& param_info) { return std::string(param_info.param->level); });

TEST(Levels, TheForcedOneIsTheOneThatRuns) {
  const char* why = nullptr;
  for (const KernelTable* table : usable_levels()) {
    const KernelTable* chosen = select_level(table->level, &why);
    ASSERT_EQ(chosen, table);
  }
  EXPECT_EQ(select_level("", &why), usable_levels().front());
  EXPECT_EQ(select_level("avx9000", &why), nullptr);
  EXPECT_NE(why, nullptr);
  EXPECT_EQ(usable_levels().back()->level, "generic");
}

}  // namespace
}  // namespace hk::kernels
