// Storing keys and values: rounding of each KV type, the same bytes at every ISA level, nothing beside the element.
#include "kernels/kv_type.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/quant/half.h"

namespace hk::kernels {
namespace {

TEST(KvTypes, NamesAreFoundAgain) {
  std::set<std::string_view> names;
  for (const KvType type : kKvTypes) {
    names.insert(kv_type_name(type));
    EXPECT_EQ(find_kv_type(kv_type_name(type)), type);
  }
  EXPECT_EQ(names, (std::set<std::string_view>{"f16", "bf16", "q8_0", "f32"}));
  for (const char* wrong : {"", "F16", "q8", "q8_0 ", "q4_0"}) EXPECT_EQ(find_kv_type(wrong), std::nullopt) << wrong;
}

TEST(KvTypes, EightBitPagesAreLittleMoreThanHalfAsLarge) {
  const auto bytes = [](KvType type) { return key_page_bytes(type, 128) + value_page_bytes(type, 128); };
  EXPECT_EQ(bytes(KvType::kF16), 2U * 128 * 256 * 2);
  EXPECT_EQ(bytes(KvType::kBf16), bytes(KvType::kF16));
  EXPECT_EQ(bytes(KvType::kF32), 2 * bytes(KvType::kF16));
  EXPECT_EQ(bytes(KvType::kQ8_0), 256U * (128 + 4 * 2) + 256U * (128 + 2));
  for (const KvType type : kKvTypes) {
    for (std::size_t size = 1; size <= 300; ++size) ASSERT_EQ(key_page_bytes(type, size) % 64, 0U) << size;
  }
}

class KvStore : public testing::TestWithParam<const KernelTable*> {
 protected:
  static std::vector<std::uint8_t> key_page(const KernelTable& table, KvType type, const std::vector<float>& x,
                                            std::size_t position, std::uint8_t fill = 0) {
    std::vector<std::uint8_t> page(key_page_bytes(type, x.size()), fill);
    table.store_key(x.data(), x.size(), type, position, page.data());
    return page;
  }
  static std::vector<std::uint8_t> value_page(const KernelTable& table, KvType type, const std::vector<float>& x,
                                              std::size_t position, std::uint8_t fill = 0) {
    std::vector<std::uint8_t> page(value_page_bytes(type, x.size()), fill);
    table.store_value(x.data(), x.size(), type, position, page.data());
    return page;
  }
};

TEST_P(KvStore, ElementsAreRoundedAsTheTypeSays) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (const KvType type : kKvTypes) {
    for (const std::size_t size : {1, 2, 5, 16, 31, 32, 33, 80, 112, 128, 129, 300}) {
      for (const float scale : {1.0F, 1e-7F, 3e4F, 1e-20F}) {
        if (scale == 1e-20F && type == KvType::kF16) continue;  // below its range
        std::vector<float> x(size);
        for (float& v : x) v = scale * normal(random);
        for (const std::size_t position : {0, 17, 255}) {
          const auto keys = key_page(*GetParam(), type, x, position),
                     values = value_page(*GetParam(), type, x, position);
          for (std::size_t d = 0; d < size; ++d) {
            const float key = key_element(type, keys.data(), size, position, d);
            const float value = value_element(type, values.data(), size, position, d);
            if (type == KvType::kQ8_0) {
              const auto half_step = [&](std::size_t block) {
                float peak = 0;
                for (std::size_t i = d / block * block; i < std::min(size, (d / block + 1) * block); ++i)
                  peak = std::max(peak, std::abs(x[i]));
                return peak / 127 * 0.505F;  // the scale is rounded up to 8 bits
              };
              ASSERT_NEAR(key, x[d], half_step(kKeyBlock)) << size << ' ' << d;
              ASSERT_NEAR(value, x[d], half_step(kValueBlock)) << size << ' ' << d;
              continue;
            }
            const float expected = type == KvType::kF32   ? x[d]
                                   : type == KvType::kF16 ? f16_to_f32(f32_to_f16(x[d]))
                                                          : bf16_to_f32(f32_to_bf16(x[d]));
            ASSERT_EQ(key, expected);
            ASSERT_EQ(value, expected);
          }
        }
      }
    }
  }
}

TEST_P(KvStore, BytesAreTheSameAtEveryLevel) {
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  const KernelTable& generic = *usable_levels().back();
  for (const KvType type : kKvTypes) {
    for (const std::size_t size : {1, 7, 32, 80, 96, 112, 128, 200}) {
      std::vector<float> x(size);
      for (float& v : x) v = normal(random);
      EXPECT_EQ(key_page(*GetParam(), type, x, 21), key_page(generic, type, x, 21));
      EXPECT_EQ(value_page(*GetParam(), type, x, 21), value_page(generic, type, x, 21));
    }
  }
}

/// Every upper half of a float, and floats around the middle between two of them.
TEST_P(KvStore, Bf16IsRoundedToNearestEven) {
  std::vector<float> values;
  for (std::uint32_t upper = 0; upper < 0x10000; ++upper) {
    for (const std::uint32_t lower : {0x0U, 0x1U, 0x7FFFU, 0x8000U, 0x8001U, 0xFFFFU}) {
      const std::uint32_t bits = upper << 16 | lower;
      float x;
      std::memcpy(&x, &bits, 4);
      values.push_back(x);
    }
  }
  std::vector<std::uint16_t> page(kKvPage * values.size());
  GetParam()->store_value(values.data(), values.size(), KvType::kBf16, 0, page.data());
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(page[i], f32_to_bf16(values[i])) << i;
}

/// A position's neighbours keep what they hold.
TEST_P(KvStore, OnlyTheOnePositionIsWritten) {
  const std::vector<float> x(37, 0.5F), other(37, 2.0F);
  for (const KvType type : kKvTypes) {
    auto keys = key_page(*GetParam(), type, other, 0), values = value_page(*GetParam(), type, other, 0);
    for (std::size_t p = 1; p < kKvPage; ++p) {
      GetParam()->store_key(other.data(), 37, type, p, keys.data());
      GetParam()->store_value(other.data(), 37, type, p, values.data());
    }
    GetParam()->store_key(x.data(), 37, type, 18, keys.data());
    GetParam()->store_value(x.data(), 37, type, 18, values.data());
    for (std::size_t p = 0; p < kKvPage; ++p) {
      for (std::size_t d = 0; d < 37; ++d) {
        const float expected = p == 18 ? 0.5F : 2.0F;
        // one code is the peak itself: off only by the rounding of 127 times the scale
        ASSERT_NEAR(key_element(type, keys.data(), 37, p, d), expected, 0.01F);
        ASSERT_NEAR(value_element(type, values.data(), 37, p, d), expected, 0.01F);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, KvStore, testing::ValuesIn(usable_levels().begin(), usable_levels().end()),
                         [](const auto& param_info) { return std::string(param_info.param->level); });

}  // namespace
}  // namespace hk::kernels
