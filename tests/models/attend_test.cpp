// Attention over a long context: split over threads in several rounds, it gives the bits of one thread.
#include "models/attend.h"

#include <gtest/gtest.h>

#include <random>

namespace hk::models {
namespace {

constexpr std::size_t kKvHeads = 2, kGroup = 32, kLength = 128;
constexpr std::size_t kPositions = 70 * kernels::kKvPage + 13;

ModelSpec one_layer() {
  ModelSpec spec;
  LayerSpec layer;
  layer.attention.heads = kKvHeads * kGroup;
  layer.attention.kv_heads = kKvHeads;
  layer.attention.key_length = layer.attention.value_length = kLength;
  spec.layers.push_back(layer);
  KvSlot slot;
  slot.heads = kKvHeads;
  slot.key_length = slot.value_length = kLength;
  spec.kv_slots.push_back(slot);
  return spec;
}

/// A sequence full of made-up keys and values, the same for the same type.
void fill(KvSequence& sequence, kernels::KvType type) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> any(-1, 1);
  std::vector<float> x(kLength);
  sequence.prepare(0, kPositions);
  for (std::size_t p = 0; p < kPositions; ++p) {
    for (float& v : x) v = any(random);
    for (std::size_t head = 0; head < kKvHeads; ++head) {
      const std::size_t page = p / kernels::kKvPage, in_page = p % kernels::kKvPage;
      x[head] = 0.5F;  // heads differ
      kernels::kernels().store_key(x.data(), kLength, type, in_page, sequence.keys(0, head, page));
      kernels::kernels().store_value(x.data(), kLength, type, in_page, sequence.values(0, head, page));
    }
  }
  sequence.commit(kPositions);
}

TEST(Attend, SplitContextsGiveTheBitsOfOneThread) {
  // Partial results of 142 pages take more than a round.
  static_assert(2 * 71 * kGroup * (kLength + 2) * sizeof(float) > Attention::kPartialBytes);
  const ModelSpec spec = one_layer();
  std::mt19937 random(2);
  std::uniform_real_distribution<float> any(-0.3F, 0.3F);
  std::vector<float> sinks(kKvHeads * kGroup);
  for (float& v : sinks) v = any(random);
  for (const kernels::KvType type : {kernels::KvType::kF16, kernels::KvType::kQ8_0}) {
    KvSequence sequence(nullptr, spec, {kPositions, type});
    fill(sequence, type);
    for (const std::size_t rows : {1, 3}) {
      for (const bool special : {false, true}) {
        AttentionSpec attention = spec.layers[0].attention;
        if (special) {
          attention.window = 5000;
          attention.sinks = sinks.data();
        }
        RowBuffer q_buffer, out_buffer;
        const Rows q = q_buffer.shape(rows, kKvHeads * kGroup * kLength);
        for (std::size_t i = 0; i < rows; ++i) {
          for (std::size_t c = 0; c < q.cols; ++c) q[i][c] = any(random);
        }
        const Segment segment{&sequence, 0, rows, kPositions - rows};
        std::vector<float> expected;
        for (const int threads : {1, 2, 5}) {
          engine::ThreadPool pool(threads);
          Attention attend(spec, kernels::kernels(), pool);
          const Rows out = out_buffer.shape(rows, q.cols);
          for (int again = 0; again < 2; ++again) {  // what is left in the buffers does not matter
            attend.run(attention, {&segment, 1}, q, out);
            std::vector<float> got;
            for (std::size_t i = 0; i < rows; ++i) got.insert(got.end(), out[i], out[i] + out.cols);
            if (expected.empty()) expected = got;
            ASSERT_EQ(got, expected) << kernels::kv_type_name(type) << ", " << rows << " rows, " << threads
                                     << " threads";
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace hk::models
