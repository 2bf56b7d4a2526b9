// Payloads: which sizes fit which shape, what a decoder refuses, overlaps and scales that verify finds.
#include "engine/container/payload.h"

#include <cstring>
#include <limits>

#include "base/error.h"
#include "engine/container/metadata_blob.h"
#include "engine/container/validate.h"
#include "tests/engine/container/hk_fixtures.h"

namespace hk::engine {
namespace {

using test::error_of;
using Kind = PayloadVerdict::Kind;

TensorView view_of(StorageType type, std::initializer_list<std::uint64_t> shape) {
  TensorView view;
  view.name = "t";
  view.type = type;
  view.ndim = static_cast<std::uint32_t>(shape.size());
  std::copy(shape.begin(), shape.end(), view.shape);
  return view;
}

TEST(Payload, SizesOfEveryBlockFormatFollowTheTable) {
  for (const auto& format : kernels::formats()) {
    if (format.decode == nullptr) continue;
    const std::uint64_t cols = format.block_elements * 3;
    const auto view = view_of(format.type, {5, cols});
    const std::uint64_t bytes = 5 * 3 * std::uint64_t{format.block_bytes};
    EXPECT_EQ(check_sizes(view, {bytes}).kind, Kind::kFine) << format.name;
    EXPECT_EQ(check_sizes(view, {bytes + 1}).kind, Kind::kBroken) << format.name;
    EXPECT_EQ(check_sizes(view, {bytes - 1}).kind, Kind::kBroken) << format.name;
    EXPECT_EQ(check_sizes(view, {bytes, 0, 4 * 5 * cols}).kind, Kind::kFine) << format.name;
    EXPECT_EQ(check_sizes(view, {bytes, 0, 4 * 5 * cols - 4}).kind, Kind::kBroken) << format.name;
    if (format.block_elements > 1) {
      EXPECT_EQ(check_sizes(view_of(format.type, {3, cols / 3 * 2 + 1}), {bytes}).kind, Kind::kBroken) << format.name;
    }
  }
}

TEST(Payload, OpaqueTypesAreNamed) {
  for (const auto& format : kernels::formats()) {
    if (format.storage_class != kernels::StorageClass::kOpaque) continue;
    const auto verdict = check_sizes(view_of(format.type, {32}), {7});
    EXPECT_EQ(verdict.kind, Kind::kUnpublished) << format.name;
    EXPECT_NE(verdict.why.find(format.name), std::string::npos) << verdict.why;
    EXPECT_NE(verdict.why.find("not supported"), std::string::npos) << verdict.why;
  }
  auto tiled = view_of(StorageType::kF32, {4, 4});
  tiled.tile_layout = TileLayout::kBlockSparse2_4;
  EXPECT_EQ(check_sizes(tiled, {64}).kind, Kind::kUnpublished);
  auto pruned = view_of(StorageType::kF32, {4, 4});
  pruned.sparsity = Sparsity::kPhysicalPruned;
  EXPECT_EQ(check_sizes(pruned, {64}).kind, Kind::kUnpublished);
  EXPECT_EQ(check_sizes(view_of(StorageType::kInt8, {4}), {4, 4}).kind, Kind::kUnpublished);  // what would scales mean?
}

TEST(Payload, HugeShapesDoNotOverflow) {
  constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();
  for (const auto& format : kernels::formats())
    for (const auto layout : {TileLayout::kRowMajor, TileLayout::kTile64x64, TileLayout::kColMajor})
      for (std::uint8_t sparsity = 0; sparsity <= 5; ++sparsity)
        for (const auto& shape : {std::pair(kMost, kMost), std::pair(kMost / 2 + 1, std::uint64_t{2}),
                                  std::pair(kMost / 8, std::uint64_t{1}), std::pair(std::uint64_t{0}, kMost),
                                  std::pair(kMost, std::uint64_t{0})}) {
          auto view = view_of(format.type, {shape.first, shape.second});
          view.tile_layout = layout;
          view.sparsity = static_cast<Sparsity>(sparsity);
          for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{64}, kMost})
            (void)check_sizes(view, {size, size});
        }
  // Zero elements in a huge shape decode at once.
  for (const auto layout : {TileLayout::kRowMajor, TileLayout::kTile16x16, TileLayout::kColMajor}) {
    HK_FIXTURE(path, "fixtures/hk/all-types.hk");
    const HkReader reader(path.string());
    auto view = view_of(StorageType::kF32, {kMost, 0});
    view.tile_layout = layout;
    EXPECT_NO_THROW(dequantize_to_f32(reader, view, false, {}));
  }
}

/// A model of one tensor, in a folder of its own.
class OneTensor : public testing::Test {
 protected:
  const HkReader& write(TensorPlan plan, std::span<const std::byte> data, std::span<const std::byte> scales = {}) {
    const auto path = (folder_.path() / "one.hk").string();
    plan.name = "t";
    plan.data_size = data.size();
    plan.scale_size = scales.size();
    HkWriter writer(path, {}, {}, {plan});
    writer.write(0, HkWriter::Stream::kData, 0, data);
    writer.write(0, HkWriter::Stream::kScales, 0, scales);
    writer.finish();
    reader_ = std::make_unique<HkReader>(path);
    return *reader_;
  }
  std::vector<std::string> faults() {
    std::vector<std::string> texts;
    for (const auto& finding : validate(*reader_))
      if (finding.wrong) texts.push_back(finding.text);
    return texts;
  }
  std::vector<float> values() { return test::decode(*reader_, reader_->tensors()[0]); }

  test::TemporaryFolder folder_;
  std::unique_ptr<HkReader> reader_;
};

TEST_F(OneTensor, TernaryCodeWithoutMeaning) {
  const std::vector<float> scale = {0.5f};
  std::vector<std::byte> codes(8, std::byte{0b00100100});
  write({.type = StorageType::kDQT, .shape = {32}}, codes, test::bytes_of(scale));
  const auto decoded = values();
  EXPECT_EQ(std::vector<float>(decoded.begin(), decoded.begin() + 4), (std::vector<float>{0, 0.5f, -0.5f, 0}));
  EXPECT_TRUE(faults().empty());
  codes[7] = std::byte{0b11000000};
  write({.type = StorageType::kDQT, .shape = {32}}, codes, test::bytes_of(scale));
  EXPECT_EQ(faults().size(), 1u);
  EXPECT_NE(error_of([&] { values(); }).find("element 31"), std::string::npos);
}

TEST_F(OneTensor, InfiniteScalesAreFound) {
  // q4_0: an f16 scale, 16 bytes of codes.
  std::vector<std::byte> blocks(2 * 18);
  write({.type = StorageType::kQ4_0, .shape = {2, 32}}, blocks);
  EXPECT_TRUE(faults().empty());
  blocks[19] = std::byte{0x7C};
  write({.type = StorageType::kQ4_0, .shape = {2, 32}}, blocks);
  ASSERT_EQ(faults().size(), 1u);
  EXPECT_NE(faults()[0].find("q4_0 block 1"), std::string::npos) << faults()[0];
  const std::vector<float> scales = {1.0f, std::numeric_limits<float>::quiet_NaN()};
  write({.type = StorageType::kDQ8, .shape = {64}}, std::vector<std::byte>(64), test::bytes_of(scales));
  EXPECT_EQ(faults().size(), 1u);
  const std::vector<float> weights = {1.0f, std::numeric_limits<float>::infinity()};
  write({.shape = {2}}, test::bytes_of(weights));
  EXPECT_TRUE(faults().empty());  // odd, but what the file says
  EXPECT_EQ(validate(*reader_).size(), 1u);
}

TEST_F(OneTensor, TwoValuesForOnePlaceContradict) {
  std::vector<std::byte> data(4 + 8);
  const float first = 1.5f;
  std::memcpy(data.data() + 4, &first, 4);
  write({.type = StorageType::kSparse2_4, .shape = {4}}, data);  // positions 0 and 0, values 1.5 and 0
  EXPECT_EQ(faults().size(), 1u);
  EXPECT_NE(error_of([&] { values(); }).find("position 0"), std::string::npos);
  std::memcpy(data.data() + 8, &first, 4);
  write({.type = StorageType::kSparse2_4, .shape = {4}}, data);
  EXPECT_TRUE(faults().empty());
  EXPECT_EQ(values(), (std::vector<float>{1.5f, 0, 0, 0}));
}

TEST_F(OneTensor, OverlapsAreFound) {
  const std::vector<float> weights(64, 1.0f);
  write({.shape = {64}}, test::bytes_of(weights));
  auto bytes = test::read_file(folder_.path() / "one.hk");
  // data_offset of the only entry: name (2 + 1), four bytes, one dimension.
  const auto at = static_cast<std::size_t>(reader_->header().tensor_toc_offset) + 3 + 4 + 8;
  const std::uint64_t in_the_table = reader_->header().tensor_toc_offset + 4;
  std::memcpy(bytes.data() + at, &in_the_table, 8);
  reader_ = std::make_unique<HkReader>(folder_.write("overlap.hk", bytes).string());
  EXPECT_EQ(reader_->tensors()[0].problem, "");
  bool found = false;
  for (const auto& fault : faults()) found |= fault.find("overlap") != fault.npos;
  EXPECT_TRUE(found);
}

TEST_F(OneTensor, OutputMustHoldTheTensor) {
  write({.shape = {4}}, test::bytes_of(std::vector<float>{1, 2, 3, 4}));
  std::vector<float> out(3);
  EXPECT_NE(error_of([&] { dequantize_to_f32(*reader_, reader_->tensors()[0], false, out); }), "");
  // A view that nobody checked is checked before use.
  auto view = reader_->tensors()[0];
  view.shape[0] = 1000;
  out.resize(1000);
  EXPECT_NE(error_of([&] { dequantize_to_f32(*reader_, view, false, out); }), "");
}

}  // namespace
}  // namespace hk::engine
