// The self check: every level passes, every kind of fault is found and named, the next level takes over.
#include "kernels/self_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "kernels/quant/half.h"
#include "kernels/quant/sample_blocks.h"

namespace hk::kernels {
namespace {

const KernelTable& sound() { return *usable_levels().back(); }

std::string fault_of(const KernelTable& table) {
  const auto wrong = self_check(table);
  return wrong ? wrong->kernel : "";
}

TEST(SelfCheck, EveryLevelPasses) {
  for (const KernelTable* table : usable_levels()) {
    const auto wrong = self_check(*table);
    EXPECT_FALSE(wrong) << table->level << ": " << wrong->kernel << ", " << wrong->detail;
  }
}

// Kernels that are right but for one thing. They call the sound level's kernel and then spoil a bit of its result.
void wrong_last_row(const MatmulArgs& args) {
  sound().matmul(StorageType::kQ4_K)(args);
  args.out[args.rows - 1] *= 1.001F;
}
void right_for_one_row_only(const MatmulArgs& args) {
  sound().matmul(StorageType::kTQ2_0)(args);
  if (args.n > 1) args.out[(args.n - 1) * args.out_stride] += 1;
}
void other_bits_for_one_row(const MatmulArgs& args) {
  sound().matmul(StorageType::kQ8_0)(args);
  if (args.n != 1) return;
  std::uint32_t bits;
  std::memcpy(&bits, args.out, sizeof bits);
  bits ^= 1;
  std::memcpy(args.out, &bits, sizeof bits);
}
void one_result_too_many(const MatmulArgs& args) {
  sound().matmul(StorageType::kF16)(args);
  args.out[args.rows] = 0;
}
void no_number(const MatmulArgs& args) {
  sound().matmul(StorageType::kBF16)(args);
  args.out[0] = std::nanf("");
}
template <StorageType kType, MatmulFn kBroken>
MatmulFn one_broken(StorageType type) {
  return type == kType ? kBroken : sound().matmul(type);
}

TEST(SelfCheck, NamesTheMatrixKernelThatIsWrong) {
  KernelTable table = sound();
  table.matmul = one_broken<StorageType::kQ4_K, wrong_last_row>;
  const auto wrong = self_check(table);
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->kernel, "matmul q4_k");
  EXPECT_NE(wrong->detail.find("row 36, activation 0: "), std::string::npos) << wrong->detail;
  table.matmul = one_broken<StorageType::kTQ2_0, right_for_one_row_only>;
  EXPECT_EQ(fault_of(table), "matmul tq2_0");
  table.matmul = one_broken<StorageType::kQ8_0, other_bits_for_one_row>;
  EXPECT_EQ(fault_of(table), "matmul q8_0");
  table.matmul = one_broken<StorageType::kF16, one_result_too_many>;
  EXPECT_EQ(fault_of(table), "matmul f16");
  table.matmul = one_broken<StorageType::kBF16, no_number>;
  EXPECT_EQ(fault_of(table), "matmul bf16");
  table.matmul = one_broken<StorageType::kIQ1_S, nullptr>;
  EXPECT_EQ(fault_of(table), "matmul iq1_s");
}

TEST(SelfCheck, FindsAFaultInEveryOtherKernel) {
  const auto broken = [](auto change) {
    KernelTable table = sound();
    change(table);
    return fault_of(table);
  };
  EXPECT_EQ(broken([](KernelTable& t) {
              t.rms_norm = [](const float* x, const float* w, float eps, std::size_t n, float* out) {
                sound().rms_norm(x, w, eps * 100, n, out);
              };
            }),
            "rms_norm");
  EXPECT_EQ(broken([](KernelTable& t) {
              t.layer_norm = [](const float* x, const float* w, const float*, float eps, std::size_t n, float* out) {
                sound().layer_norm(x, w, nullptr, eps, n, out);
              };
            }),
            "layer_norm");
  EXPECT_EQ(
      broken([](KernelTable& t) { t.add = [](float* x, const float* y, std::size_t n) { sound().add(x, y, n - 1); }; }),
      "add");
  EXPECT_EQ(broken([](KernelTable& t) {
              t.add_scaled = [](float* x, const float* y, float, std::size_t n) { sound().add(x, y, n); };
            }),
            "add_scaled");
  EXPECT_EQ(
      broken([](KernelTable& t) { t.scale = [](float* x, float s, std::size_t n) { sound().scale(x, s, n + 1); }; }),
      "scale");
  EXPECT_EQ(broken([](KernelTable& t) { t.silu_mul = t.gelu_mul; }), "silu_mul");
  EXPECT_EQ(broken([](KernelTable& t) { t.gelu_mul = t.silu_mul; }), "gelu_mul");
  EXPECT_EQ(broken([](KernelTable& t) { t.relu2_mul = t.silu_mul; }), "relu2_mul");
  EXPECT_EQ(broken([](KernelTable& t) { t.rope_adjacent = t.rope_halves; }), "rope_adjacent");
  EXPECT_EQ(broken([](KernelTable& t) { t.rope_halves = t.rope_adjacent; }), "rope_halves");
  EXPECT_EQ(broken([](KernelTable& t) { t.softmax = [](float* x, std::size_t n) { sound().softmax(x, n - 1); }; }),
            "softmax");
  EXPECT_EQ(broken([](KernelTable& t) {
              t.quantize_row = [](ActivationFormat format, const float* x, std::size_t cols, void* record) {
                sound().quantize_row(format, x, cols, record);
                // a rounding the other way in one code
                if (format == ActivationFormat::kQ8x256) --static_cast<std::int8_t*>(record)[cols - 1];
              };
            }),
            "quantize_row q8x256");
  EXPECT_EQ(broken([](KernelTable& t) {
              t.store_key = [](const float* k, std::size_t n, KvType type, std::size_t p, void* page) {
                sound().store_key(k, n - 1, type, p, page);
              };
            }),
            "store_key f32");
  EXPECT_EQ(broken([](KernelTable& t) {
              t.store_value = [](const float* v, std::size_t n, KvType type, std::size_t p, void* page) {
                sound().store_value(v, n, type, p, page);
                if (type == KvType::kF16) static_cast<std::uint16_t*>(page)[p * n] ^= 1;
              };
            }),
            "store_value f16");
  EXPECT_EQ(broken([](KernelTable& t) {
              t.attend_page = [](const AttendPageArgs& args) {
                AttendPageArgs other = args;
                other.softcap = 0;
                sound().attend_page(other);
              };
            }),
            "attend_page f32");
  EXPECT_EQ(broken([](KernelTable& t) {
              t.attend_merge = [](float* max, float* sum, float* acc, float, float page_sum, const float* page_acc,
                                  std::size_t n) { sound().attend_merge(max, sum, acc, *max, page_sum, page_acc, n); };
            }),
            "attend_merge");
}

TEST(SelfCheck, FallsBackToTheNextLevel) {
  KernelTable broken = sound();
  broken.level = "broken";
  broken.matmul = one_broken<StorageType::kQ4_K, wrong_last_row>;
  KernelTable worse = sound();
  worse.level = "worse";
  worse.silu_mul = worse.gelu_mul;

  const KernelTable* const levels[] = {&broken, &worse, &sound()};
  const SoundLevel chosen = find_sound_level(levels);
  EXPECT_EQ(chosen.table, &sound());
  ASSERT_EQ(chosen.faults.size(), 2U);
  EXPECT_EQ(chosen.faults[0].level, "broken");
  EXPECT_EQ(chosen.faults[0].disagreement.kernel, "matmul q4_k");
  EXPECT_EQ(chosen.faults[1].level, "worse");
  EXPECT_EQ(chosen.faults[1].disagreement.kernel, "silu_mul");

  const KernelTable* const none[] = {&worse, &broken};
  EXPECT_EQ(find_sound_level(none).table, nullptr);
  EXPECT_EQ(find_sound_level(none).faults.size(), 2U);
  EXPECT_EQ(find_sound_level(std::span(levels).last(1)).faults.size(), 0U);
  EXPECT_EQ(find_sound_level({}).table, nullptr);
}

TEST(SampleBlocks, AreFiniteOfOrdinarySizeAndTheSameEveryTime) {
  for (const Format& format : formats()) {
    constexpr std::size_t kBlocks = 300;
    std::vector<std::uint8_t> bytes(kBlocks * format.block_bytes + 1, 0x5A), again = bytes;
    SampleRandom random(5), same(5);
    const bool runs = format.activation != ActivationFormat::kNone;
    EXPECT_EQ(fill_sample_blocks(format, bytes.data(), kBlocks, random), runs) << format.name;
    EXPECT_EQ(fill_sample_blocks(format, again.data(), kBlocks, same), runs) << format.name;
    EXPECT_EQ(bytes, again) << format.name;
    EXPECT_EQ(bytes.back(), 0x5A) << format.name;
    if (!runs) continue;
    std::vector<float> decoded(kBlocks * format.block_elements);
    format.decode(bytes.data(), decoded.data(), decoded.size());
    float largest = 0;
    for (const float v : decoded) {
      ASSERT_TRUE(std::isfinite(v)) << format.name;
      largest = std::fmax(largest, std::fabs(v));
    }
    EXPECT_GT(largest, 0.005F) << format.name;
    EXPECT_LT(largest, 100.0F) << format.name;
  }
}

TEST(Probe, PeakLoopsDoWhatTheySay) {
  std::vector<std::uint32_t> words(3 * kProbeReadUnit / 4);
  std::uint32_t expected = 0, next = 1;
  for (std::uint32_t& word : words) expected ^= word = next *= 2654435761U;
  for (const KernelTable* table : usable_levels()) {
    const ProbeKernels& probe = table->probe;
    EXPECT_EQ(probe.read(words.data(), words.size() * 4), expected) << table->level;
    EXPECT_EQ(probe.read(words.data(), 0), 0U);
    EXPECT_GT(probe.int8_dot(1), 0U);
    EXPECT_EQ(probe.int8_dot(10), 10 * probe.int8_dot(1)) << table->level;
    EXPECT_EQ(probe.f32_fma(10), 10 * probe.f32_fma(1)) << table->level;
    EXPECT_EQ(probe.bf16_dot(10), 10 * probe.bf16_dot(1)) << table->level;
    EXPECT_EQ(probe.int8_dot(1), 4 * probe.f32_fma(1)) << table->level;
  }
}

}  // namespace
}  // namespace hk::kernels
