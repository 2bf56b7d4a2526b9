// Expects that an opened model says what the raw bytes of a GGUF file say, whatever container it was opened from.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstring>

#include "engine/container/model_reader.h"
#include "tests/support/gguf_walker.h"

namespace hk::test {

/// Same bits, or both NaN.
inline bool same_number(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b) || (a != a && b != b);
}

inline void expect_same_pair(const engine::Metadata& metadata, const WalkedPair& pair) {
  SCOPED_TRACE("key " + pair.key);
  const auto* entry = metadata.find(pair.key);
  ASSERT_NE(entry, nullptr);
  if (pair.type == 9) {
    EXPECT_EQ(entry->type, engine::ValueType::kBytes);
    if (pair.element_type == 8) {
      const auto list = metadata.strings(pair.key);
      ASSERT_TRUE(list.has_value());
      ASSERT_EQ(list->size(), pair.texts.size());
      for (std::size_t i = 0; i < pair.texts.size(); ++i) ASSERT_EQ((*list)[i], pair.texts[i]) << i;
    } else if (pair.element_type == 6) {
      const auto list = metadata.floats(pair.key);
      ASSERT_TRUE(list.has_value());
      ASSERT_EQ(list->size(), pair.numbers.size());
      for (std::size_t i = 0; i < pair.numbers.size(); ++i)
        ASSERT_TRUE(same_number(static_cast<double>((*list)[i]), pair.numbers[i])) << i;
    } else {
      const auto list = metadata.integers(pair.key);
      ASSERT_TRUE(list.has_value());
      ASSERT_EQ(list->size(), pair.integers.size());
      for (std::size_t i = 0; i < pair.integers.size(); ++i) ASSERT_EQ((*list)[i], pair.integers[i]) << i;
    }
  } else if (pair.type == 8) {
    EXPECT_EQ(entry->type, engine::ValueType::kString);
    EXPECT_EQ(metadata.string(pair.key), pair.texts.at(0));
  } else if (pair.type == 7) {
    EXPECT_EQ(entry->type, engine::ValueType::kBool);
    EXPECT_EQ(metadata.boolean(pair.key), pair.integers.at(0) != 0);
  } else if (pair.type == 6 || pair.type == 12) {
    EXPECT_EQ(entry->type, engine::ValueType::kFloat64);
    EXPECT_TRUE(same_number(metadata.number(pair.key).value(), pair.numbers.at(0)));
  } else {
    EXPECT_EQ(entry->type, engine::ValueType::kInt64);
    EXPECT_EQ(metadata.integer(pair.key), pair.integers.at(0));
  }
}

inline void expect_same_tensor(const engine::TensorView& tensor, const WalkedTensor& walked,
                               std::span<const std::byte> file) {
  SCOPED_TRACE("tensor " + walked.name);
  EXPECT_EQ(tensor.name, walked.name);
  EXPECT_EQ(tensor.problem, "");
  const auto* format = kernels::find_format(tensor.type);
  ASSERT_NE(format, nullptr);
  EXPECT_EQ(format->gguf_type, static_cast<std::int32_t>(walked.type));
  ASSERT_EQ(tensor.ndim, walked.dims.size());
  std::uint64_t elements = 1;
  for (std::size_t i = 0; i < walked.dims.size(); ++i) {
    EXPECT_EQ(tensor.shape[i], walked.dims[walked.dims.size() - 1 - i]);
    elements *= walked.dims[i];
  }
  EXPECT_EQ(tensor.elements(), elements);
  const std::uint64_t bytes = elements / format->block_elements * format->block_bytes;
  ASSERT_EQ(tensor.data.size(), bytes);
  ASSERT_LE(walked.offset + bytes, file.size());
  EXPECT_EQ(std::memcmp(tensor.data.data(), file.data() + walked.offset, bytes), 0) << "payload differs";
}

/// All pairs and tensors in order; `more_pairs` is how many keys the model may have beyond the file's.
inline void expect_same_model(const engine::ModelReader& model, std::span<const std::byte> file,
                              std::size_t more_pairs = 0) {
  const auto walked = GgufWalker(file).walk();
  EXPECT_EQ(model.metadata().entries().size(), walked.pairs.size() + more_pairs);
  for (std::size_t i = 0; i < walked.pairs.size(); ++i) {
    ASSERT_LT(i, model.metadata().entries().size());
    EXPECT_EQ(model.metadata().entries()[i].key, walked.pairs[i].key);
    expect_same_pair(model.metadata(), walked.pairs[i]);
  }
  ASSERT_EQ(model.tensors().size(), walked.tensors.size());
  for (std::size_t i = 0; i < walked.tensors.size(); ++i) {
    expect_same_tensor(model.tensors()[i], walked.tensors[i], file);
    EXPECT_EQ(model.find(walked.tensors[i].name), &model.tensors()[i]);
  }
}

}  // namespace hk::test
