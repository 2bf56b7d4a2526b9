// Weights brought to where they are to stay: the same bytes at the same addresses, told and stopped on the way.
#include "engine/generate/load_weights.h"

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/container/mapped_file.h"
#include "tests/support/fixtures.h"

namespace hk::engine {
namespace {

/// Some files, and nothing in them.
class Files final : public ModelReader {
 public:
  Files(const test::TemporaryFolder& folder, const std::vector<std::size_t>& sizes) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const auto path = (folder.path() / std::to_string(i)).string();
      std::string text(sizes[i], '\0');
      for (std::size_t at = 0; at < text.size(); ++at) text[at] = static_cast<char>(at * 31 + at / 4096 + i);
      std::ofstream(path, std::ios::binary) << text;
      texts_.push_back(std::move(text));
      files_.push_back(std::make_unique<MappedFile>(path));
    }
  }
  const std::string& path() const override { return path_; }
  std::string_view container() const override { return "test"; }
  const Metadata& metadata() const override { return metadata_; }
  std::span<const TensorView> tensors() const override { return {}; }
  std::uint64_t mapped_bytes() const override {
    std::uint64_t sum = 0;
    for (const auto& text : texts_) sum += text.size();
    return sum;
  }
  std::vector<MappedFile*> mapped_files() override {
    std::vector<MappedFile*> all;
    for (const auto& file : files_) all.push_back(file.get());
    return all;
  }
  std::span<const std::string> remarks() const override { return {}; }

  bool unchanged() const {
    for (std::size_t i = 0; i < files_.size(); ++i) {
      const auto bytes = files_[i]->bytes();
      if (std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()) != texts_[i]) return false;
    }
    return true;
  }

 private:
  std::string path_ = "files";
  Metadata metadata_;
  std::vector<std::string> texts_;
  std::vector<std::unique_ptr<MappedFile>> files_;
};

const std::vector<std::size_t> kSizes = {(9 << 20) + 1, 0, 100, 4 << 20};

TEST(LoadWeights, EveryWayGivesTheSameBytes) {
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    for (const LoadMode mode : {LoadMode::kMap, LoadMode::kRead, LoadMode::kLock}) {
      for (const ReadAhead ahead : {ReadAhead::kAuto, ReadAhead::kOn, ReadAhead::kOff}) {
        const test::TemporaryFolder folder;
        Files files(folder, kSizes);
        const auto* before = files.mapped_files()[0]->bytes().data();
        std::uint64_t last = 0, total = 0;
        const LoadControl control{{}, [&](std::uint64_t done, std::uint64_t all) {
                                    EXPECT_GE(done, last);
                                    last = done;
                                    total = all;
                                  }};
        try {
          load_weights(files, mode, ahead, {}, pool, control);
        } catch (const Error& error) {
          // Locking is the system's to allow.
          ASSERT_EQ(mode, LoadMode::kLock) << error.what();
          EXPECT_NE(std::string(error.what()).find("RLIMIT_MEMLOCK"), std::string::npos) << error.what();
          continue;
        }
        EXPECT_TRUE(files.unchanged());
        EXPECT_EQ(files.mapped_files()[0]->bytes().data(), before);
        if (mode == LoadMode::kMap && ahead == ReadAhead::kOff) EXPECT_EQ(total, 0U);
        if (mode == LoadMode::kRead || (mode == LoadMode::kMap && ahead == ReadAhead::kOn)) {
          EXPECT_EQ(last, files.mapped_bytes());
          EXPECT_EQ(total, files.mapped_bytes());
        }
      }
    }
  }
}

TEST(LoadWeights, StopsWhenAsked) {
  for (const LoadMode mode : {LoadMode::kMap, LoadMode::kRead}) {
    for (const int threads : {1, 2}) {
      ThreadPool pool(threads);
      const test::TemporaryFolder folder;
      Files files(folder, kSizes);
      std::uint64_t seen = 0;
      const LoadControl control{[] { return true; }, [&](std::uint64_t done, std::uint64_t) { seen = done; }};
      try {
        load_weights(files, mode, ReadAhead::kOn, {}, pool, control);
        FAIL() << "not stopped";
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kInterrupted);
      }
      EXPECT_LT(seen, files.mapped_bytes());
      EXPECT_TRUE(files.unchanged());  // the mapping is still there
      int ran = 0;
      pool.run(3, [&](std::size_t, int) { ++ran; });
      EXPECT_GE(ran, 1);  // the pool works on
    }
  }
}

TEST(LoadWeights, FilesThatDoNotFitAreNotReadAhead) {
  const test::TemporaryFolder folder;
  Files files(folder, kSizes);
  MachineMemory small;
  small.available = 1 << 20;
  EXPECT_FALSE(wants_read_ahead(files, small));
}

TEST(LoadWeights, CachedFilesAreNotReadAhead) {
  const test::TemporaryFolder folder;
  Files files(folder, kSizes);  // written this moment
  EXPECT_FALSE(wants_read_ahead(files, {}));
}

}  // namespace
}  // namespace hk::engine
