// HkWriter: what is written is read back, whatever the alignment, order of pieces or stream; nothing is left on
// failure.
#include "engine/container/hk_writer.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <random>
#include <thread>

#include "base/error.h"
#include "engine/container/atomic_file.h"
#include "engine/container/hk_index.h"
#include "engine/container/validate.h"
#include "tests/engine/container/hk_fixtures.h"

namespace hk::engine {
namespace {

using test::error_of;
using Stream = HkWriter::Stream;

TensorPlan plan_of(const TensorView& view) {
  TensorPlan plan;
  plan.name = std::string(view.name);
  plan.type = view.shared_with.empty() ? view.type : StorageType::kSharedRef;
  plan.shape.assign(view.shape, view.shape + view.ndim);
  plan.data_size = view.data.size();
  plan.scale_size = view.scales.size();
  plan.residual_size = view.residual.size();
  plan.tile_layout = view.tile_layout;
  plan.sparsity = view.sparsity;
  plan.block_size = view.block_size;
  plan.sparsity_ratio = view.sparsity_ratio;
  plan.shared_with = std::string(view.shared_with);
  return plan;
}

/// Copies a model: tensors backwards, streams in odd pieces.
void copy_model(const ModelReader& from, const std::string& path, const HkWriter::Options& options) {
  MetadataBuilder metadata;
  metadata.add(from.metadata());
  std::vector<TensorPlan> plans;
  for (const auto& view : from.tensors()) plans.push_back(plan_of(view));
  HkWriter writer(path, options, metadata, plans);
  for (std::size_t i = plans.size(); i-- > 0;) {
    const auto& view = from.tensors()[i];
    if (!view.shared_with.empty()) continue;
    const std::pair<Stream, std::span<const std::byte>> streams[] = {
        {Stream::kResidual, view.residual}, {Stream::kScales, view.scales}, {Stream::kData, view.data}};
    for (const auto& [stream, bytes] : streams) {
      constexpr std::size_t kPiece = 1001;
      for (std::size_t end = bytes.size(); end > 0;) {  // last piece first
        const auto start = (end - 1) / kPiece * kPiece;
        writer.write(i, stream, start, bytes.subspan(start, end - start));
        end = start;
      }
    }
  }
  writer.finish();
}

void expect_same(const ModelReader& a, const ModelReader& b) {
  ASSERT_EQ(a.tensors().size(), b.tensors().size());
  for (std::size_t i = 0; i < a.tensors().size(); ++i) {
    const auto& x = a.tensors()[i];
    const auto& y = b.tensors()[i];
    EXPECT_EQ(x.name, y.name);
    EXPECT_EQ(x.type, y.type);
    EXPECT_EQ(x.tile_layout, y.tile_layout);
    EXPECT_EQ(x.sparsity, y.sparsity);
    EXPECT_EQ(x.shape_text(), y.shape_text());
    EXPECT_EQ(x.block_size, y.block_size);
    EXPECT_EQ(x.sparsity_ratio, y.sparsity_ratio);
    EXPECT_EQ(x.shared_with, y.shared_with);
    for (const auto stream : {&TensorView::data, &TensorView::scales, &TensorView::residual})
      EXPECT_TRUE(std::equal((x.*stream).begin(), (x.*stream).end(), (y.*stream).begin(), (y.*stream).end())) << x.name;
  }
  ASSERT_EQ(a.metadata().entries().size(), b.metadata().entries().size());
  for (std::size_t i = 0; i < a.metadata().entries().size(); ++i) {
    EXPECT_EQ(a.metadata().entries()[i].key, b.metadata().entries()[i].key);
    EXPECT_EQ(a.metadata().to_text(a.metadata().entries()[i]), b.metadata().to_text(b.metadata().entries()[i]));
  }
}

class Alignment : public testing::TestWithParam<std::uint32_t> {};

TEST_P(Alignment, RoundTrip) {
  HK_FIXTURE(path, "fixtures/hk/all-types.hk");
  const HkReader original(path.string());
  const test::TemporaryFolder folder;
  const auto copy = (folder.path() / "copy.hk").string();
  const std::uint32_t alignment = GetParam();
  copy_model(original, copy, {.alignment = alignment});
  const HkReader reader(copy);
  expect_same(original, reader);
  for (const auto& finding : validate(reader)) EXPECT_FALSE(finding.wrong) << finding.text;
  EXPECT_EQ(reader.header().alignment, alignment);
  const auto flags = reader.header().flags;
  EXPECT_TRUE(flags & kHkLittleEndian);
  EXPECT_EQ((flags & kHkTileAligned) != 0, alignment % 128 == 0);
  EXPECT_EQ((flags & kHkFlexibleAlignment) != 0, alignment % 128 != 0);
  EXPECT_EQ((flags & kHkPageAligned) != 0, alignment >= 4096);
  EXPECT_FALSE(flags & (kHkIsSharded | kHkHasAppendix));
  const auto* start = reader.files()[0].bytes().data();
  for (const auto& tensor : reader.tensors())
    for (const auto& stream : {tensor.data, tensor.scales, tensor.residual})
      if (!stream.empty()) {
        EXPECT_EQ((stream.data() - start) % alignment, 0) << tensor.name;
      }
  EXPECT_EQ(test::files_in(folder.path()), 1u);
}

INSTANTIATE_TEST_SUITE_P(Any, Alignment, testing::Values(1, 2, 7, 32, 64, 127, 128, 129, 4096, 16384, 32768, 65535));

TEST(HkWriter, TheFixtureIsReproducedByteForByte) {
  HK_FIXTURE(path, "fixtures/hk/all-types.hk");
  const test::TemporaryFolder folder;
  const auto copy = (folder.path() / "copy.hk").string();
  copy_model(HkReader(path.string()), copy, {});
  EXPECT_EQ(test::read_file(copy), test::read_file(path));
}

TEST(HkWriter, RefusesWhatTheFormatCannotHold) {
  const test::TemporaryFolder folder;
  const auto path = (folder.path() / "bad.hk").string();
  const TensorPlan good{.name = "t", .shape = {2, 3}, .data_size = 24};
  const auto refusal = [&](HkWriter::Options options, std::vector<TensorPlan> plans) {
    return error_of([&] { HkWriter writer(path, options, {}, std::move(plans)); });
  };
  EXPECT_EQ(refusal({}, {good}), "");
  EXPECT_NE(refusal({.alignment = 0}, {good}), "");
  EXPECT_NE(refusal({.alignment = 65536}, {good}), "");
  EXPECT_NE(refusal({.split_index = 2, .split_count = 2}, {good}), "");
  EXPECT_NE(refusal({.split_count = 0}, {good}), "");
  EXPECT_NE(refusal({}, {good, good}).find("two tensors"), std::string::npos);
  const auto changed = [&](auto change) {
    auto plan = good;
    change(plan);
    return refusal({}, {plan});
  };
  EXPECT_NE(changed([](auto& p) { p.name = ""; }), "");
  EXPECT_NE(changed([](auto& p) { p.name = std::string(129, 'n'); }), "");
  EXPECT_EQ(changed([](auto& p) { p.name = std::string(128, 'n'); }), "");
  EXPECT_NE(changed([](auto& p) { p.name = "\xff"; }), "");
  EXPECT_NE(changed([](auto& p) { p.shape = std::vector<std::uint64_t>(9, 1); }), "");
  EXPECT_NE(changed([](auto& p) { p.data_size = 25; }), "");
  EXPECT_NE(changed([](auto& p) { p.block_size = 65536; }), "");
  EXPECT_NE(changed([](auto& p) { p.type = StorageType::kQ4_0; }), "");
  EXPECT_NE(changed([](auto& p) { p.shape = {1ull << 40, 1ull << 40}; }), "");
  EXPECT_NE(changed([](auto& p) { p.type = StorageType::kSharedRef, p.shared_with = "t"; }), "");
  EXPECT_NE(changed([](auto& p) { p.type = StorageType::kSharedRef, p.shared_with = "absent"; }), "");
  EXPECT_EQ(test::files_in(folder.path()), 0u);
}

TEST(HkWriter, AnUnfinishedFileLeavesTheOldOne) {
  const test::TemporaryFolder folder;
  const auto path = folder.write("model.hk", test::bytes_of("old")).string();
  const std::vector<float> values = {1, 2, 3, 4};
  const auto bytes = test::bytes_of(values);
  {
    HkWriter writer(path, {}, {}, {{.name = "t", .shape = {4}, .data_size = 16}});
    writer.write_data(0, bytes.first(12));
    EXPECT_NE(error_of([&] { writer.finish(); }).find("12 of 16 bytes of the data of tensor \"t\""), std::string::npos);
    EXPECT_NE(error_of([&] { writer.write(0, Stream::kData, 8, bytes.first(12)); }), "");
    EXPECT_NE(error_of([&] { writer.write(0, Stream::kScales, 0, bytes.first(1)); }), "");
  }
  EXPECT_EQ(test::read_file(path).size(), 3u);
  EXPECT_EQ(test::files_in(folder.path()), 1u);
  HkWriter writer(path, {}, {}, {{.name = "t", .shape = {4}, .data_size = 16}});
  writer.write_data(0, bytes);
  EXPECT_EQ(test::read_file(path).size(), 3u);  // not before it is finished
  writer.finish();
  const HkReader reader(path);
  EXPECT_EQ(test::decode(reader, *reader.find("t")), values);
  EXPECT_EQ(test::files_in(folder.path()), 1u);
}

TEST(HkWriter, ReplacesTheTargetOfALinkAndNoDevice) {
  const test::TemporaryFolder folder;
  const auto real = folder.write("real.hk", test::bytes_of("old"));
  std::filesystem::permissions(real, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  const auto link = folder.path() / "link.hk";
  std::filesystem::create_symlink("real.hk", link);
  HkWriter writer(link.string(), {}, {}, {});
  writer.finish();
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(HkReader(real.string()).tensors().size(), 0u);
  EXPECT_EQ(std::filesystem::status(real).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  EXPECT_NE(error_of([] { HkWriter device("/dev/null", {}, {}, {}); }), "");
  EXPECT_NE(error_of([&] { HkWriter nowhere((folder.path() / "no" / "x.hk").string(), {}, {}, {}); }), "");
}

TEST(HkWriter, AFullDiskIsAResourceError) {
  const test::TemporaryFolder folder;
  const auto path = (folder.path() / "large.hk").string();
  const auto child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // A limit on the file size stands for the full disk: the same calls fail the same way.
    const ::rlimit limit{100000, 100000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    std::signal(SIGXFSZ, SIG_IGN);
    int code = 0;
    try {
      HkWriter writer(path, {}, {}, {{.name = "t", .shape = {100000}, .data_size = 400000}});
    } catch (const Error& error) {
      code = static_cast<int>(error.kind());
    }
    ::_exit(code);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), static_cast<int>(ErrorKind::kResource));
  EXPECT_EQ(test::files_in(folder.path()), 0u);
}

TEST(HkWriter, PiecesMayComeFromSeveralThreads) {
  const test::TemporaryFolder folder;
  const auto path = (folder.path() / "threads.hk").string();
  constexpr std::size_t kTensors = 16, kValues = 5000;
  std::vector<TensorPlan> plans;
  for (std::size_t i = 0; i < kTensors; ++i)
    plans.push_back({.name = "t" + std::to_string(i), .shape = {kValues}, .data_size = 4 * kValues});
  HkWriter writer(path, {}, {}, plans);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (std::size_t i = t; i < kTensors; i += 4)
        writer.write_data(i, test::bytes_of(std::vector<float>(kValues, static_cast<float>(i))));
    });
  for (auto& thread : threads) thread.join();
  writer.finish();
  const HkReader reader(path);
  for (std::size_t i = 0; i < kTensors; ++i)
    EXPECT_EQ(test::decode(reader, reader.tensors()[i]), std::vector<float>(kValues, static_cast<float>(i)));
}

TEST(HkWriter, ShardsAndTheirIndex) {
  const test::TemporaryFolder folder;
  constexpr std::uint32_t kShards = 3;
  std::vector<std::pair<std::string, std::string>> where;
  for (std::uint32_t shard = 0; shard < kShards; ++shard) {
    MetadataBuilder metadata;
    if (shard == 0) metadata.add_string("general.architecture", "test");
    metadata.add_integer("only." + std::to_string(shard), shard);
    const auto name = hk_shard_name("set", shard, kShards);
    const auto tensor = "t" + std::to_string(shard);
    HkWriter writer((folder.path() / name).string(), {.split_index = shard, .split_count = kShards}, metadata,
                    {{.name = tensor, .shape = {1}, .data_size = 4}});
    writer.write_data(0, test::bytes_of(std::vector<float>{static_cast<float>(shard)}));
    writer.finish();
    where.emplace_back(tensor, name);
  }
  const auto index = (folder.path() / "set.hk.index.json").string();
  write_hk_index(index, where);
  for (const auto& path : {index, (folder.path() / where[1].second).string()}) {
    const HkReader reader(path);
    ASSERT_EQ(reader.tensors().size(), kShards);
    EXPECT_TRUE(reader.header().flags & kHkIsSharded);
    for (std::uint32_t i = 0; i < kShards; ++i) {
      EXPECT_EQ(test::decode(reader, reader.tensors()[i]), std::vector<float>{static_cast<float>(i)});
      EXPECT_EQ(reader.metadata().integer("only." + std::to_string(i)), i);
    }
    for (const auto& finding : validate(reader)) ADD_FAILURE() << finding.text;
  }
}

TEST(HkWriter, AnEmptyNameIsRefusedAsSuch) {
  const std::string why = error_of([] { AtomicFile file(""); });
  EXPECT_NE(why.find("the name of the file to write is empty"), std::string::npos) << why;
}

TEST(HkWriter, EmptyModelsAndEmptyTensors) {
  const test::TemporaryFolder folder;
  const auto path = (folder.path() / "empty.hk").string();
  HkWriter none(path, {}, {}, {});
  none.finish();
  EXPECT_EQ(HkReader(path).tensors().size(), 0u);
  for (const auto& finding : validate(HkReader(path))) ADD_FAILURE() << finding.text;
  HkWriter some(path, {.alignment = 4096}, {},
                {{.name = "zero", .shape = {0, 4}},
                 {.name = "scalar", .shape = {}, .data_size = 4},
                 {.name = "null", .type = StorageType::kNullRef, .shape = {3}}});
  some.write_data(1, test::bytes_of(std::vector<float>{7}));
  some.finish();
  const HkReader reader(path);
  EXPECT_EQ(test::decode(reader, *reader.find("zero")).size(), 0u);
  EXPECT_EQ(test::decode(reader, *reader.find("scalar")), std::vector<float>{7});
  EXPECT_EQ(test::decode(reader, *reader.find("null")), std::vector<float>(3));
}

}  // namespace
}  // namespace hk::engine
