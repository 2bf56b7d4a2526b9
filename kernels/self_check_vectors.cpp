// Self check, part two: norms, sums, gates, rotary embedding, softmax.
#include <algorithm>
#include <functional>

#include "kernels/self_check_parts.h"

namespace hk::kernels::check {
namespace {

constexpr std::size_t kSize = 109;  // whole vectors of any level and a rest
constexpr double kClose = 2e-6, kFloor = 1e-6;

using Doubles = std::vector<double>;

std::vector<float> guarded() { return std::vector<float>(kSize + 3, kGuard); }
std::vector<float> guarded(const std::vector<float>& x) {
  auto out = guarded();
  std::copy(x.begin(), x.end(), out.begin());
  return out;
}

Doubles each(const std::function<double(std::size_t)>& f) {
  Doubles out(kSize);
  for (std::size_t i = 0; i < kSize; ++i) out[i] = f(i);
  return out;
}

struct Inputs {
  std::vector<float> x, y, z;
};

Result norms(const KernelTable& table, const Inputs& in) {
  constexpr double kEps = 1e-5F;
  double mean = 0, squares = 0, variance = 0;
  for (const float v : in.x) {
    mean += double{v} / kSize;
    squares += double{v} * double{v} / kSize;
  }
  for (const float v : in.x) variance += (v - mean) * (v - mean) / kSize;
  auto out = guarded();
  table.rms_norm(in.x.data(), in.y.data(), 1e-5F, kSize, out.data());
  const auto scaled = [&](std::size_t i) { return in.x[i] / std::sqrt(squares + kEps); };
  if (auto wrong =
          compare_all("rms_norm", out, each([&](std::size_t i) { return scaled(i) * in.y[i]; }), kClose, kFloor))
    return wrong;
  table.rms_norm(in.x.data(), nullptr, 1e-5F, kSize, out.data());
  if (auto wrong = compare_all("rms_norm", out, each(scaled), kClose, kFloor)) return wrong;
  table.layer_norm(in.x.data(), in.y.data(), in.z.data(), 1e-5F, kSize, out.data());
  return compare_all("layer_norm", out, each([&](std::size_t i) {
                       return (in.x[i] - mean) / std::sqrt(variance + kEps) * in.y[i] + in.z[i];
                     }),
                     kClose, 5e-6);
}

Result sums(const KernelTable& table, const Inputs& in) {
  auto out = guarded(in.x);
  table.add(out.data(), in.y.data(), kSize);
  if (auto wrong =
          compare_all("add", out, each([&](std::size_t i) { return double{in.x[i]} + in.y[i]; }), kClose, kFloor))
    return wrong;
  out = guarded(in.x);
  table.add_scaled(out.data(), in.y.data(), 0.37F, kSize);
  if (auto wrong = compare_all("add_scaled", out,
                               each([&](std::size_t i) { return in.x[i] + double{0.37F} * in.y[i]; }), kClose, kFloor))
    return wrong;
  out = guarded(in.x);
  table.scale(out.data(), 0.37F, kSize);
  return compare_all("scale", out, each([&](std::size_t i) { return double{0.37F} * in.x[i]; }), kClose, kFloor);
}

Result gates(const KernelTable& table, const Inputs& in) {
  const auto silu = [](double x) { return x / (1 + std::exp(-x)); };
  const auto gelu = [](double x) {
    constexpr double kRootTwoOverPi = 0.7978845608028654;
    return 0.5 * x * (1 + std::tanh(kRootTwoOverPi * (x + 0.044715 * x * x * x)));
  };
  const auto relu2 = [](double x) { return x > 0 ? x * x : 0; };
  const auto check = [&](const char* name, auto kernel, auto function) -> Result {
    auto out = guarded();
    kernel(in.x.data(), in.y.data(), kSize, out.data());
    if (auto wrong = compare_all(name, out, each([&](std::size_t i) { return function(double{in.x[i]}) * in.y[i]; }),
                                 kClose, kFloor))
      return wrong;
    kernel(in.x.data(), nullptr, kSize, out.data());
    return compare_all(name, out, each([&](std::size_t i) { return function(double{in.x[i]}); }), kClose, kFloor);
  };
  if (auto wrong = check("silu_mul", table.silu_mul, silu)) return wrong;
  if (auto wrong = check("gelu_mul", table.gelu_mul, gelu)) return wrong;
  return check("relu2_mul", table.relu2_mul, relu2);
}

Result rotations(const KernelTable& table, const Inputs& in) {
  constexpr std::size_t kRotated = 54, kPairs = kRotated / 2;
  std::vector<float> cos(kPairs), sin(kPairs);
  for (std::size_t i = 0; i < kPairs; ++i) {
    cos[i] = std::cos(0.3F * static_cast<float>(i));
    sin[i] = std::sin(0.3F * static_cast<float>(i));
  }
  const auto check = [&](const char* name, auto kernel, auto first, auto second) -> Result {
    Doubles expected(in.x.begin(), in.x.end());
    for (std::size_t i = 0; i < kPairs; ++i) {
      const double a = in.x[first(i)], b = in.x[second(i)];
      expected[first(i)] = a * cos[i] - b * sin[i];
      expected[second(i)] = a * sin[i] + b * cos[i];
    }
    auto out = guarded(in.x);
    kernel(out.data(), cos.data(), sin.data(), kRotated);
    return compare_all(name, out, expected, kClose, kFloor);
  };
  if (auto wrong = check(
          "rope_adjacent", table.rope_adjacent, [](std::size_t i) { return 2 * i; },
          [](std::size_t i) { return 2 * i + 1; }))
    return wrong;
  return check(
      "rope_halves", table.rope_halves, [](std::size_t i) { return i; }, [](std::size_t i) { return i + kPairs; });
}

Result softmax(const KernelTable& table, const Inputs& in) {
  auto out = guarded(in.x);
  for (std::size_t i = 0; i < kSize; ++i) out[i] *= 4;
  Doubles expected(out.begin(), out.begin() + kSize);
  const double largest = *std::max_element(expected.begin(), expected.end());
  double sum = 0;
  for (double& e : expected) sum += e = std::exp(e - largest);
  for (double& e : expected) e /= sum;
  table.softmax(out.data(), kSize);
  return compare_all("softmax", out, expected, 4e-6, 1e-9);
}

}  // namespace

Result vectors(const KernelTable& table) {
  SampleRandom random(7);
  const Inputs in{values(kSize, random, 2.0F), values(kSize, random), values(kSize, random)};
  for (const auto part : {norms, sums, gates, rotations, softmax}) {
    if (auto wrong = part(table, in)) return wrong;
  }
  return std::nullopt;
}

}  // namespace hk::kernels::check
