// A plain scalar KernelTable: every kernel written as its definition, in double. The oracle that levels and models are
// held against, and the reason a wrong result can be blamed on the one or the other.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/quant/format.h"
#include "kernels/quant/half.h"

namespace hk::test {

namespace reference {

using kernels::ActivationFormat;
using kernels::KvType;
using kernels::StorageType;

inline void quantize_row(ActivationFormat format, const float* x, std::size_t cols, void* record) {
  auto* bytes = static_cast<std::byte*>(record);
  if (format == ActivationFormat::kF32 || format == ActivationFormat::kNone) {
    std::memcpy(bytes, x, cols * sizeof(float));
    return;
  }
  const std::size_t block = format == ActivationFormat::kQ8x32 ? 32 : 256;
  const auto layout = kernels::activation_layout(format, cols);
  std::memset(bytes, 0, layout.stride);
  const auto code_sum = [&](std::size_t first, std::size_t n) {
    std::int32_t sum = 0;
    for (std::size_t i = first; i < first + n; ++i) sum += static_cast<std::int8_t>(bytes[i]);
    return sum;
  };
  for (std::size_t b = 0; b < cols / block; ++b) {
    float largest = 0;
    for (std::size_t i = 0; i < block; ++i) largest = std::max(largest, std::abs(x[b * block + i]));
    const float scale = largest / 127.0F;
    const float inverse = largest == 0 ? 0 : 127.0F / largest;
    std::memcpy(bytes + layout.scales + b * sizeof(float), &scale, sizeof(float));
    for (std::size_t i = 0; i < block; ++i) {
      const auto code = static_cast<std::int8_t>(std::nearbyint(x[b * block + i] * inverse));
      std::memcpy(bytes + b * block + i, &code, 1);
    }
    if (format == ActivationFormat::kQ8x32) {
      const std::int32_t sum = code_sum(b * 32, 32);
      std::memcpy(bytes + layout.sums + b * sizeof(sum), &sum, sizeof(sum));
      continue;
    }
    std::int16_t sums[kernels::kSuperSums];
    for (std::size_t g = 0; g < 16; ++g) sums[g] = static_cast<std::int16_t>(code_sum(b * 256 + 16 * g, 16));
    for (std::size_t g = 0; g < 8; ++g) sums[16 + g] = static_cast<std::int16_t>(sums[2 * g] + sums[2 * g + 1]);
    std::memcpy(bytes + layout.sums + b * sizeof(sums), sums, sizeof(sums));
  }
}

/// The activation row that a record stands for.
inline std::vector<float> decode_record(ActivationFormat format, const void* record, std::size_t cols) {
  const auto* bytes = static_cast<const std::byte*>(record);
  std::vector<float> x(cols);
  if (format == ActivationFormat::kF32 || format == ActivationFormat::kNone) {
    std::memcpy(x.data(), bytes, cols * sizeof(float));
    return x;
  }
  const std::size_t block = format == ActivationFormat::kQ8x32 ? 32 : 256;
  const auto layout = kernels::activation_layout(format, cols);
  for (std::size_t i = 0; i < cols; ++i) {
    float scale;
    std::memcpy(&scale, bytes + layout.scales + i / block * sizeof(float), sizeof(float));
    x[i] = scale * static_cast<float>(static_cast<std::int8_t>(bytes[i]));
  }
  return x;
}

template <StorageType kType>
void matmul(const kernels::MatmulArgs& args) {
  const kernels::Format& format = *kernels::find_format(kType);
  const ActivationFormat prepared = kernels::activation_of(kType);
  std::vector<std::vector<float>> x(args.n);
  for (std::size_t i = 0; i < args.n; ++i)
    x[i] = decode_record(prepared, static_cast<const std::byte*>(args.activations) + i * args.activation_stride,
                         args.cols);
  std::vector<float> row(args.cols);
  for (std::size_t r = 0; r < args.rows; ++r) {
    format.decode(static_cast<const std::byte*>(args.weights) + r * args.weight_stride, row.data(), args.cols);
    for (std::size_t i = 0; i < args.n; ++i) {
      double sum = 0;
      for (std::size_t c = 0; c < args.cols; ++c) sum += static_cast<double>(row[c]) * static_cast<double>(x[i][c]);
      args.out[i * args.out_stride + r] = static_cast<float>(sum);
    }
  }
}

template <std::size_t... kValues>
constexpr auto matmul_table(std::index_sequence<kValues...>) {
  return std::array<kernels::MatmulFn, sizeof...(kValues)>{matmul<static_cast<StorageType>(kValues)>...};
}

inline kernels::MatmulFn find_matmul(StorageType type) {
  static constexpr auto kTable = matmul_table(std::make_index_sequence<256>());
  const kernels::Format* format = kernels::find_format(type);
  if (format == nullptr || format->decode == nullptr || kernels::activation_of(type) == ActivationFormat::kNone)
    return nullptr;
  return kTable[static_cast<std::size_t>(type)];
}

inline void rms_norm(const float* x, const float* weight, float eps, std::size_t n, float* out) {
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  const double factor = 1 / std::sqrt(sum / static_cast<double>(n) + static_cast<double>(eps));
  for (std::size_t i = 0; i < n; ++i)
    out[i] = static_cast<float>(static_cast<double>(x[i]) * factor *
                                (weight == nullptr ? 1.0 : static_cast<double>(weight[i])));
}

inline void layer_norm(const float* x, const float* weight, const float* bias, float eps, std::size_t n, float* out) {
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]);
  const double mean = sum / static_cast<double>(n);
  for (std::size_t i = 0; i < n; ++i)
    squares += (static_cast<double>(x[i]) - mean) * (static_cast<double>(x[i]) - mean);
  const double factor = 1 / std::sqrt(squares / static_cast<double>(n) + static_cast<double>(eps));
  for (std::size_t i = 0; i < n; ++i) {
    const double normal = (static_cast<double>(x[i]) - mean) * factor;
    out[i] = static_cast<float>(normal * (weight == nullptr ? 1.0 : static_cast<double>(weight[i])) +
                                (bias == nullptr ? 0.0 : static_cast<double>(bias[i])));
  }
}

inline void add(float* x, const float* y, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) x[i] += y[i];
}
inline void add_scaled(float* x, const float* y, float scale, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) x[i] += scale * y[i];
}
inline void scale(float* x, float factor, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) x[i] *= factor;
}

template <typename F>
void activate(F&& f, const float* gate, const float* up, std::size_t n, float* out) {
  for (std::size_t i = 0; i < n; ++i) {
    const double y = f(static_cast<double>(gate[i]));
    out[i] = static_cast<float>(up == nullptr ? y : y * static_cast<double>(up[i]));
  }
}
inline void silu_mul(const float* gate, const float* up, std::size_t n, float* out) {
  activate([](double x) { return x / (1 + std::exp(-x)); }, gate, up, n, out);
}
inline void gelu_mul(const float* gate, const float* up, std::size_t n, float* out) {
  activate([](double x) { return 0.5 * x * (1 + std::tanh(0.7978845608028654 * x * (1 + 0.044715 * x * x))); }, gate,
           up, n, out);
}
inline void relu2_mul(const float* gate, const float* up, std::size_t n, float* out) {
  activate([](double x) { return x > 0 ? x * x : 0; }, gate, up, n, out);
}

inline void rotate(float& a, float& b, float cos, float sin) {
  const double x = static_cast<double>(a), y = static_cast<double>(b);
  a = static_cast<float>(x * static_cast<double>(cos) - y * static_cast<double>(sin));
  b = static_cast<float>(x * static_cast<double>(sin) + y * static_cast<double>(cos));
}
inline void rope_adjacent(float* head, const float* cos, const float* sin, std::size_t n_rot) {
  for (std::size_t i = 0; i < n_rot / 2; ++i) rotate(head[2 * i], head[2 * i + 1], cos[i], sin[i]);
}
inline void rope_halves(float* head, const float* cos, const float* sin, std::size_t n_rot) {
  for (std::size_t i = 0; i < n_rot / 2; ++i) rotate(head[i], head[i + n_rot / 2], cos[i], sin[i]);
}

inline void softmax(float* x, std::size_t n) {
  if (n == 0) return;
  const double top = static_cast<double>(*std::max_element(x, x + n));
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += std::exp(static_cast<double>(x[i]) - top);
  for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<float>(std::exp(static_cast<double>(x[i]) - top) / sum);
}

/// One number of a type that has no scales.
inline void store(void* page, std::size_t index, KvType type, float value) {
  if (type == KvType::kF32) {
    std::memcpy(static_cast<std::byte*>(page) + 4 * index, &value, 4);
  } else {
    const std::uint16_t half = type == KvType::kF16 ? kernels::f32_to_f16(value) : kernels::f32_to_bf16(value);
    std::memcpy(static_cast<std::byte*>(page) + 2 * index, &half, 2);
  }
}
/// The smallest bf16 number that takes all values below code 127, and the codes.
inline std::uint16_t codes_of(const float* x, std::size_t n, std::int8_t* codes) {
  float peak = 0;
  for (std::size_t i = 0; i < n; ++i) peak = std::max(peak, std::fabs(x[i]));
  const float least = peak / 127;
  std::uint32_t bits;
  std::memcpy(&bits, &least, 4);
  const auto scale = static_cast<std::uint16_t>((bits + 0xFFFF) >> 16);
  for (std::size_t i = 0; i < n; ++i)
    codes[i] =
        peak == 0 ? std::int8_t{0} : static_cast<std::int8_t>(std::nearbyint(x[i] / kernels::bf16_to_f32(scale)));
  return scale;
}
inline void store_key(const float* k, std::size_t head_size, KvType type, std::size_t position, void* page) {
  using namespace kernels;
  const std::size_t group = position / kKeyGroup, lane = position % kKeyGroup;
  if (type != KvType::kQ8_0) {
    for (std::size_t d = 0; d < head_size; ++d) store(page, (group * head_size + d) * kKeyGroup + lane, type, k[d]);
    return;
  }
  std::byte* base = static_cast<std::byte*>(page) + group * key_group_bytes(head_size);
  for (std::size_t d = 0; d < head_size; d += kKeyBlock) {
    std::int8_t codes[kKeyBlock];
    const std::size_t n = std::min(kKeyBlock, head_size - d);
    const std::uint16_t scale = codes_of(k + d, n, codes);
    for (std::size_t i = d; i < d + n; ++i)
      base[(i / kDotBytes * kKeyGroup + lane) * kDotBytes + i % kDotBytes] = static_cast<std::byte>(codes[i - d]);
    std::memcpy(base + key_code_bytes(head_size) + (d / kKeyBlock * kKeyGroup + lane) * 2, &scale, 2);
  }
}
inline void store_value(const float* v, std::size_t value_size, KvType type, std::size_t position, void* page) {
  using namespace kernels;
  if (type != KvType::kQ8_0) {
    for (std::size_t d = 0; d < value_size; ++d) store(page, position * value_size + d, type, v[d]);
    return;
  }
  auto* base = static_cast<std::byte*>(page);
  for (std::size_t d = 0; d < value_size; d += kValueBlock) {
    std::int8_t codes[kValueBlock];
    const std::size_t n = std::min(kValueBlock, value_size - d);
    const std::uint16_t scale = codes_of(v + d, n, codes);
    for (std::size_t i = d; i < d + n; ++i)
      base[(position / kDotBytes * value_size + i) * kDotBytes + position % kDotBytes] =
          static_cast<std::byte>(codes[i - d]);
    std::memcpy(base + kKvPage * value_size + (d / kValueBlock * kKvPage + position) * 2, &scale, 2);
  }
}

inline void attend_page(const kernels::AttendPageArgs& a) {
  for (std::size_t i = 0; i < a.n; ++i) {
    std::vector<double> scores;
    for (std::size_t j = a.first[i]; j < a.last[i]; ++j) {
      double score = 0;
      for (std::size_t d = 0; d < a.head_size; ++d)
        score +=
            static_cast<double>(a.q[i][d]) * static_cast<double>(kernels::key_element(a.type, a.k, a.head_size, j, d));
      if (a.softcap > 0) score = static_cast<double>(a.softcap) * std::tanh(score / static_cast<double>(a.softcap));
      if (a.slope != nullptr) score += static_cast<double>(a.slope[i]) * (a.distance[i] + static_cast<double>(j));
      scores.push_back(score);
    }
    std::fill_n(a.acc[i], a.value_size, 0.0F);
    a.max[i] = -std::numeric_limits<float>::infinity();
    a.sum[i] = 0;
    if (scores.empty()) continue;
    a.max[i] = static_cast<float>(*std::max_element(scores.begin(), scores.end()));
    std::vector<double> acc(a.value_size);
    double sum = 0;
    for (std::size_t j = a.first[i]; j < a.last[i]; ++j) {
      const double weight = std::exp(scores[j - a.first[i]] - static_cast<double>(a.max[i]));
      sum += weight;
      for (std::size_t d = 0; d < a.value_size; ++d)
        acc[d] += weight * static_cast<double>(kernels::value_element(a.type, a.v, a.value_size, j, d));
    }
    a.sum[i] = static_cast<float>(sum);
    for (std::size_t d = 0; d < a.value_size; ++d) a.acc[i][d] = static_cast<float>(acc[d]);
  }
}

inline void attend_merge(float* max, float* sum, float* acc, float page_max, float page_sum, const float* page_acc,
                         std::size_t value_size) {
  const float top = std::max(*max, page_max);
  if (!(top > -std::numeric_limits<float>::infinity())) return;
  const float keep = std::exp(*max - top), take = std::exp(page_max - top);
  for (std::size_t d = 0; d < value_size; ++d) acc[d] = acc[d] * keep + page_acc[d] * take;
  *sum = *sum * keep + page_sum * take;
  *max = top;
}

}  // namespace reference

inline const kernels::KernelTable& reference_kernels() {
  namespace r = reference;
  static const kernels::KernelTable table = {
      .level = "reference",
      .quantize_row = r::quantize_row,
      .matmul = r::find_matmul,
      .rms_norm = r::rms_norm,
      .layer_norm = r::layer_norm,
      .add = r::add,
      .add_scaled = r::add_scaled,
      .scale = r::scale,
      .silu_mul = r::silu_mul,
      .gelu_mul = r::gelu_mul,
      .relu2_mul = r::relu2_mul,
      .rope_adjacent = r::rope_adjacent,
      .rope_halves = r::rope_halves,
      .softmax = r::softmax,
      .store_key = r::store_key,
      .store_value = r::store_value,
      .attend_page = r::attend_page,
      .attend_merge = r::attend_merge,
      .probe = {},  // nothing to measure
  };
  return table;
}

}  // namespace hk::test
