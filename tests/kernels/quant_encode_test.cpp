// Quantizers: reference bytes where the recipe is exact, reference error where it is a search, no harm from odd input.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "kernels/quant/format.h"
#include "tests/kernels/quant_fixtures.h"

namespace hk::kernels {
namespace {

std::vector<std::uint8_t> encode(const Format& format, const std::vector<float>& values, std::uint8_t fill = 0) {
  std::vector<std::uint8_t> blocks(values.size() / format.block_elements * format.block_bytes, fill);
  format.encode(values.data(), blocks.data(), values.size());
  return blocks;
}

std::vector<float> round_trip(const Format& format, const std::vector<float>& values) {
  const auto blocks = encode(format, values);
  std::vector<float> out(values.size());
  format.decode(blocks.data(), out.data(), out.size());
  return out;
}

double relative_rms(const float* found, const std::vector<float>& expected) {
  double errors = 0;
  double squares = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double x = expected[i];
    errors += (found[i] - x) * (found[i] - x);
    squares += x * x;
  }
  return std::sqrt(errors / squares);
}

TEST(QuantEncode, ExactRecipesGiveTheReferenceBytes) {
  HK_FIXTURE(folder, "fixtures/quants");
  for (const char* name : {"f32", "f16", "bf16", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q8_1", "q8_k", "mxfp4",
                           "nvfp4", "tq1_0", "tq2_0"}) {
    SCOPED_TRACE(name);
    const Format* format = find_format(std::string_view(name));
    ASSERT_NE(format->encode, nullptr);
    const auto found = encode(*format, test::quant_source(folder, name));
    const auto expected = test::quant_file(folder, std::string(name) + ".blocks.bin");
    ASSERT_GE(expected.size(), found.size());
    for (std::size_t i = 0; i < found.size(); ++i)
      ASSERT_EQ(found[i], static_cast<std::uint8_t>(expected[i]))
          << "block " << i / format->block_bytes << " byte " << i % format->block_bytes;
  }
}

TEST(QuantEncode, Nvfp4ScaleBytesAtTheEdgesOfE4M3) {
  const Format* format = find_format(std::string_view("nvfp4"));
  const std::map<float, int> expected = {
      {0.0f, 0x00},    {0x1p-11f, 0x00}, {0x1p-10f, 0x01}, {7.25f * 0x1p-9f, 0x07}, {7.75f * 0x1p-9f, 0x07},
      {0x1p-6f, 0x08}, {1.0f, 0x38},     {1.0625f, 0x39},  {1.96875f, 0x40},        {240.0f, 0x77},
      {247.5f, 0x77},  {248.0f, 0x7E},   {256.0f, 0x7E},   {448.0f, 0x7E},          {1e6f, 0x7E},
  };
  for (const auto& [scale, byte] : expected) {
    std::vector<float> values(64, 0.0f);
    values[17] = -6 * scale;  // in the second of four sub-blocks
    const auto block = encode(*format, values);
    EXPECT_EQ(block[0], 0) << scale;
    EXPECT_EQ(block[1], byte) << scale;
  }
}

TEST(QuantEncode, Mxfp4ScaleIsThePowerOfTwoOfTheLargestMagnitude) {
  const Format* format = find_format(std::string_view("mxfp4"));
  const std::map<float, int> expected = {
      {0.0f, 0},   {0x1p-149f, 0}, {0x1p-125f, 0}, {0x1p-124f, 1}, {0.99f, 124},
      {1.0f, 125}, {7.9f, 127},    {8.0f, 128},    {0x1p20f, 145}, {std::nextafter(0x1p20f, 0.0f), 145},
  };
  for (const auto& [magnitude, e] : expected) {
    std::vector<float> values(32, 0.0f);
    values[31] = -magnitude;
    EXPECT_EQ(encode(*format, values)[0], e) << magnitude;
  }
}

TEST(QuantEncode, SearchesAreAsGoodAsTheReference) {
  HK_FIXTURE(folder, "fixtures/quants");
  constexpr double kAllowed = 1.02;  // compilers that fuse operations land on other codes
  const std::map<std::string, double> published = {{"q2_k", 0.2502},  {"q3_k", 0.1338}, {"q4_k", 0.0543},
                                                   {"q5_k", 0.0278},  {"q6_k", 0.0137}, {"iq4_nl", 0.0657},
                                                   {"iq4_xs", 0.0665}};
  for (const auto& [name, error] : published) {
    SCOPED_TRACE(name);
    const Format* format = find_format(name);
    ASSERT_NE(format->encode, nullptr);
    const auto source = test::quant_source(folder, name);
    const auto found = round_trip(*format, source);
    EXPECT_LE(relative_rms(found.data(), source), kAllowed * error);
    // Ordinary weights apart: the whole is dominated by a few constructed segments.
    constexpr std::size_t kOrdinary = 14 * 1024;
    const std::vector<float> ordinary(source.begin(), source.begin() + kOrdinary);
    const auto reference = test::as_floats(test::quant_file(folder, name + ".f32.bin"));
    EXPECT_LE(relative_rms(found.data(), ordinary), kAllowed * relative_rms(reference.data(), ordinary));
  }
}

TEST(QuantEncode, GridFormatsHaveNoQuantizer) {
  for (const char* name : {"iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s"})
    EXPECT_EQ(find_format(std::string_view(name))->encode, nullptr) << name;
}

TEST(QuantEncode, ZerosStayZeroAndNothingIsWrittenForNothing) {
  for (const Format& format : formats()) {
    if (format.encode == nullptr) continue;
    SCOPED_TRACE(format.name);
    const auto out = round_trip(format, std::vector<float>(3 * format.block_elements, 0.0f));
    for (const float value : out) ASSERT_EQ(value, 0.0f);
    format.encode(nullptr, nullptr, 0);
  }
}

TEST(QuantEncode, ConstantsOfEverySizeSurvive) {
  // A block of one value is easy for every format: what is lost is the rounding of scales and codes, for FP4 the step.
  for (const Format& format : formats()) {
    if (format.encode == nullptr) continue;
    SCOPED_TRACE(format.name);
    for (const float value : {1.0f, -1.0f, 0.37f, -0.21f, 96.5f}) {
      const auto out = round_trip(format, std::vector<float>(format.block_elements, value));
      const float allowed = format.name == "mxfp4" ? 0.26f : format.name == "nvfp4" ? 0.15f : 0.04f;
      for (const float found : out) ASSERT_NEAR(found, value, std::fabs(value) * allowed);
    }
  }
}

TEST(QuantEncode, EveryByteIsWrittenWhateverTheInput) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float largest = std::numeric_limits<float>::max();
  const float tiny = std::numeric_limits<float>::denorm_min();
  const std::vector<std::vector<float>> palettes = {
      {0.0f, -0.0f},
      {tiny, -tiny, 0.0f},
      {1e-38f, -1e-39f},
      {largest, -largest, 1.0f},
      {nan},
      {nan, 1.0f, -2.0f},
      {infinity, 1.0f},
      {-infinity, infinity, nan, 0.0f},
      {1e-16f, 1e-20f},
      {1e30f, -1e30f, 1e-30f},
      {-3.0f},
      {-1.0f, -2.0f, -3.0f},
  };
  std::mt19937 random(11);
  for (const Format& format : formats()) {
    if (format.encode == nullptr) continue;
    for (std::size_t p = 0; p < palettes.size(); ++p) {
      std::vector<float> values(4 * format.block_elements);
      for (auto& value : values) value = palettes[p][random() % palettes[p].size()];
      EXPECT_EQ(encode(format, values, 0x00), encode(format, values, 0xFF)) << format.name << ", palette " << p;
    }
  }
}

TEST(QuantEncode, BlocksDoNotSeeEachOther) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (const Format& format : formats()) {
    if (format.encode == nullptr) continue;
    SCOPED_TRACE(format.name);
    std::vector<float> values(5 * format.block_elements);
    for (auto& value : values) value = normal(random);
    const auto whole = encode(format, values);
    for (std::size_t b = 0; b < 5; ++b) {
      const auto first = values.begin() + static_cast<std::ptrdiff_t>(b * format.block_elements);
      const auto single = encode(format, std::vector<float>(first, first + format.block_elements));
      ASSERT_TRUE(
          std::equal(single.begin(), single.end(), whole.begin() + static_cast<std::ptrdiff_t>(b * format.block_bytes)))
          << "block " << b;
    }
  }
}

}  // namespace
}  // namespace hk::kernels
