// A mixture of experts costs the memory of the experts that its tokens use: the others stay in the file.
//
// The model is made up and written with holes, so that 384 MiB of experts take no space on the disk either. A token's
// embedding says which two experts it goes to: attention and experts add nothing, and the router reads the embedding.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <set>

#include "tests/models/fixture_model.h"
#include "tests/support/gguf_builder.h"

namespace hk::test {
namespace {

using engine::TokenId;

constexpr std::uint32_t kF32 = 0, kF16 = 1;
constexpr std::size_t kWidth = 1024, kInner = 2048, kExperts = 32, kVocabulary = 64, kHead = 64, kHeads = 2;
constexpr std::size_t kSlab = kWidth * kInner * 2;  // bytes of a matrix of one expert
constexpr std::array<const char*, 3> kParts = {"blk.0.ffn_gate_exps.weight", "blk.0.ffn_up_exps.weight",
                                               "blk.0.ffn_down_exps.weight"};
// Where a part of the file is mapped, the kernel may map what lies around it: a huge page at most.
constexpr std::size_t kAround = std::size_t{2} << 20;

/// The two experts that a token goes to.
std::set<std::size_t> experts_of(TokenId token) {
  const auto t = static_cast<std::size_t>(token);
  return {t % kExperts, (t + 7) % kExperts};
}

/// Writes the model. What is not zero has values; the rest of the file is a hole.
std::filesystem::path write_model(const TemporaryFolder& folder) {
  struct Part {
    std::string name;
    std::uint32_t type;
    std::vector<std::uint64_t> dims;  // innermost first
    std::vector<float> values;        // of F32 tensors; empty: zeros
  };
  const std::vector<float> ones(kWidth, 1.0f);
  std::vector<float> router(kExperts * kWidth), embedding(kVocabulary * kWidth);
  for (std::size_t e = 0; e < kExperts; ++e) router[e * kWidth + e] = 1;
  for (std::size_t token = 0; token < kVocabulary; ++token)
    for (const std::size_t e : experts_of(static_cast<TokenId>(token))) embedding[token * kWidth + e] = 1;
  std::vector<Part> parts = {
      {"token_embd.weight", kF32, {kWidth, kVocabulary}, embedding},
      {"blk.0.attn_norm.weight", kF32, {kWidth}, ones},
      {"blk.0.attn_q.weight", kF32, {kWidth, kHeads * kHead}, {}},
      {"blk.0.attn_k.weight", kF32, {kWidth, kHeads * kHead}, {}},
      {"blk.0.attn_v.weight", kF32, {kWidth, kHeads * kHead}, {}},
      {"blk.0.attn_q_norm.weight", kF32, {kHead}, std::vector<float>(kHead, 1.0f)},
      {"blk.0.attn_k_norm.weight", kF32, {kHead}, std::vector<float>(kHead, 1.0f)},
      {"blk.0.attn_output.weight", kF32, {kHeads * kHead, kWidth}, {}},
      {"blk.0.ffn_norm.weight", kF32, {kWidth}, ones},
      {"blk.0.ffn_gate_inp.weight", kF32, {kWidth, kExperts}, router},
      {kParts[0], kF16, {kWidth, kInner, kExperts}, {}},
      {kParts[1], kF16, {kWidth, kInner, kExperts}, {}},
      {kParts[2], kF16, {kInner, kWidth, kExperts}, {}},
      {"output_norm.weight", kF32, {kWidth}, ones},
  };
  GgufBuilder builder;
  builder.text("general.architecture", "qwen3moe");
  const auto integer = [&](const char* key, std::size_t value) {
    builder.u32(std::string("qwen3moe.") + key, static_cast<std::uint32_t>(value));
  };
  integer("block_count", 1);
  integer("context_length", 512);
  integer("embedding_length", kWidth);
  integer("feed_forward_length", kInner);
  integer("attention.head_count", kHeads);
  integer("attention.head_count_kv", kHeads);
  integer("attention.key_length", kHead);
  integer("attention.value_length", kHead);
  integer("rope.dimension_count", kHead);
  integer("expert_count", kExperts);
  integer("expert_used_count", 2);
  integer("expert_feed_forward_length", kInner);
  builder.scalar("qwen3moe.attention.layer_norm_rms_epsilon", 6, 1e-6f);
  builder.scalar("qwen3moe.rope.freq_base", 6, 10000.0f);
  std::vector<std::uint64_t> offsets;
  std::uint64_t end = 0;
  for (const Part& part : parts) {
    offsets.push_back(end);
    builder.lying_tensor(part.name, part.type, part.dims, end);
    std::uint64_t bytes = part.type == kF32 ? 4 : 2;
    for (const std::uint64_t dim : part.dims) bytes *= dim;
    end += bytes;  // all are multiples of the alignment
  }
  const auto header = builder.build();
  const std::uint64_t data = (header.size() + builder.alignment - 1) / builder.alignment * builder.alignment;
  const auto path = folder.write("experts.gguf", header);
  const int file = ::open(path.c_str(), O_WRONLY);
  EXPECT_GE(file, 0);
  EXPECT_EQ(::ftruncate(file, static_cast<off_t>(data + end)), 0);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto bytes = std::as_bytes(std::span(parts[i].values));
    EXPECT_EQ(::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(data + offsets[i])),
              static_cast<ssize_t>(bytes.size()));
  }
  ::close(file);
  return path;
}

/// Pages of this process that are in memory, of those that lie wholly in [begin, begin + size); nothing when the system
/// does not tell.
std::optional<std::size_t> resident_pages(const std::byte* begin, std::size_t size) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t first = (reinterpret_cast<std::uintptr_t>(begin) + page - 1) / page;
  const std::size_t last = (reinterpret_cast<std::uintptr_t>(begin) + size) / page;
  if (last <= first) return 0;
  const int file = ::open("/proc/self/pagemap", O_RDONLY);
  if (file < 0) return std::nullopt;
  std::vector<std::uint64_t> entries(last - first);
  const auto bytes = static_cast<ssize_t>(entries.size() * sizeof(std::uint64_t));
  const ssize_t got =
      ::pread(file, entries.data(), static_cast<std::size_t>(bytes), static_cast<off_t>(first * sizeof(std::uint64_t)));
  ::close(file);
  if (got != bytes) return std::nullopt;
  return static_cast<std::size_t>(
      std::ranges::count_if(entries, [](std::uint64_t entry) { return (entry >> 63) != 0; }));
}

TEST(ColdExperts, StayInTheFile) {
  const TemporaryFolder folder;
  const auto reader = std::shared_ptr<engine::ModelReader>(engine::open_model(write_model(folder).string()));
  engine::ThreadPool pool(2);
  const auto model = models::open(reader, pool);
  const auto sequence = model->new_sequence({512, kernels::KvType::kF16});
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto matrices_of = [&](std::string_view part) {
    return std::ranges::find(reader->tensors(), part, &engine::TensorView::name)->data.data();
  };
  if (!resident_pages(matrices_of(kParts[0]), kSlab)) GTEST_SKIP() << "no /proc/self/pagemap";

  std::set<std::size_t> used;
  const auto check = [&] {
    std::size_t warm_pages = 0;
    for (const char* part : kParts) {
      const std::byte* matrices = matrices_of(part);
      for (std::size_t e = 0; e < kExperts; ++e) {
        const std::byte* slab = matrices + e * kSlab;
        if (used.contains(e)) {
          const auto pages = *resident_pages(slab, kSlab);
          EXPECT_GE(pages, kSlab / page - 1) << part << " of expert " << e << " was used and is not there";
          warm_pages += pages;
          continue;
        }
        // What a neighbour (another tensor, or a used expert) may have brought along is not counted.
        const std::size_t front = e == 0 || used.contains(e - 1) ? kAround : 0;
        const std::size_t back = e + 1 == kExperts || used.contains(e + 1) ? kAround : 0;
        EXPECT_EQ(*resident_pages(slab + front, kSlab - front - back), 0u) << part << " of cold expert " << e;
      }
    }
    return warm_pages * page;
  };
  EXPECT_EQ(check(), 0u) << "opening reads no expert";
  // Prompt and single tokens: two experts, then four, then all that one pass of several tokens needs.
  for (const std::vector<TokenId>& tokens : {std::vector<TokenId>{3, 3, 3}, {16}, {3, 16, 3}, {12, 12, 20, 3}}) {
    // The last layer computes only rows whose logits are asked for.
    const engine::BatchItem item{sequence.get(), tokens, engine::LogitsFor::kAll};
    model->forward({&item, 1});
    for (const TokenId token : tokens) used.merge(experts_of(token));
    EXPECT_LE(check(), used.size() * kParts.size() * kSlab);
  }
  EXPECT_EQ(used.size(), 8u);
}

}  // namespace
}  // namespace hk::test
