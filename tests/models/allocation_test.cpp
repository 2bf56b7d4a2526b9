// A forward pass allocates nothing once its buffers have seen the largest chunk: counted in the global operator new.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/models/fixture_model.h"

namespace {

std::atomic<bool> counting{false};
std::atomic<std::size_t> allocations{0};

void* take(std::size_t size, std::size_t alignment) {
  if (counting) ++allocations;
  return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}
void* take_or_throw(std::size_t size, std::size_t alignment) {
  void* memory = take(std::max<std::size_t>(size, 1), alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t size) { return take_or_throw(size, alignof(std::max_align_t)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return take_or_throw(size, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return take(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace hk::test {
namespace {

using engine::BatchItem;
using engine::LogitsFor;

void check(const char* name, kernels::KvType kv) {
  const auto fixture = FixtureModel::load(name);
  ASSERT_NE(fixture, nullptr);
  engine::ThreadPool pool(1);
  const auto model = models::open(fixture->reader(), pool);
  const auto s = model->new_sequence({256, kv});
  const auto feed = [&](std::size_t first, std::size_t n, LogitsFor logits) {
    const BatchItem item{s.get(), std::span(fixture->tokens).subspan(first, n), logits};
    model->forward({&item, 1});
  };
  feed(0, 19, LogitsFor::kAll);   // takes the buffers and the first page
  feed(19, 1, LogitsFor::kLast);  // recurrent state alternates between two blocks
  const auto scratch = model->scratch_bytes();
  counting = true;
  allocations = 0;
  for (std::size_t i = 20; i < 40; ++i) feed(i, 1, LogitsFor::kLast);
  feed(40, 8, LogitsFor::kAll);
  counting = false;
  EXPECT_EQ(allocations, 0u) << name << ", " << kernels::kv_type_name(kv);
  EXPECT_EQ(model->scratch_bytes(), scratch);
}

TEST(Allocations, NoneAfterTheFirstPass) {
  HK_FIXTURE(present, "fixtures/models/llama-q-q4_k.gguf.zst");
  counting = true;  // the count itself works
  allocations = 0;
  void* probe = ::operator new(16);
  counting = false;
  EXPECT_EQ(allocations, 1u);
  ::operator delete(probe);
  for (const char* name : {"llama-plain", "llama-q-q4_k", "qwen3moe-q-q4_k", "deepseek2-v3", "qwen35-base",
                           "granitehybrid-moe", "rwkv6-base", "gemma3n-base"})
    check(name, kernels::KvType::kF16);
  for (const kernels::KvType kv : {kernels::KvType::kBf16, kernels::KvType::kQ8_0, kernels::KvType::kF32}) {
    check("llama-plain", kv);
    check("deepseek2-v3", kv);
  }
}

}  // namespace
}  // namespace hk::test
