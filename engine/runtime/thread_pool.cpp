// The worker threads: oneTBB owns them, this file hands them chunks.
//
// Each of the pool's threads - 1 workers sits in one long task of an own TBB arena and waits for work there, so that a
// run costs one store and no scheduling. (A parallel_for a run would allocate tasks and let workers fall asleep between
// two matrix products; tests/engine/runtime/thread_pool_test.cpp prints what an empty run costs.)
//
// The hand-off is one 64-bit word, `ticket` = run number << 32 | chunks left. Claiming a chunk is a compare-and-swap
// that takes one off. Whoever succeeds holds a chunk of exactly that run, which cannot end before the chunk is reported
// done; so the function pointer is safe to read, and a worker that comes late (or not at all) costs nothing. Nobody
// waits for a thread that holds no chunk.
#include "engine/runtime/thread_pool.h"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "base/error.h"
#include "kernels/kernels.h"

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif
// TBB publishes a task's data to the thread that runs it, but the installed library is not compiled for
// ThreadSanitizer, which therefore does not see it. These two calls tell it, and nothing else.
#if defined(__SANITIZE_THREAD__)
#define HK_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HK_TSAN 1
#endif
#endif
#ifdef HK_TSAN
#include <sanitizer/tsan_interface.h>
#else
#define __tsan_release(address) static_cast<void>(address)
#define __tsan_acquire(address) static_cast<void>(address)
#endif

namespace hk::engine {
namespace {

// How long a worker without work keeps looking before it sleeps. Between two runs of a forward pass lie a few
// microseconds, between two tokens (sampling, text) up to some hundred; beyond that the core belongs to others.
constexpr std::chrono::microseconds kWorkerSpin{200};
// How long the caller waits hot for the last chunks. Longer is only useful when a worker was descheduled in the middle
// of one.
constexpr std::chrono::microseconds kCallerSpin{500};
// Looks between two readings of the clock.
constexpr int kLooks = 64;
constexpr std::uint64_t kLeftMask = 0xffffffffu;
constexpr std::size_t kMaxChunks = std::size_t{1} << 31;

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Looks at `ready` until it holds or the time is up; true when it holds. Now and then offers the core to others: on a
/// full machine the thread that is waited for may be queued behind this very one.
template <typename Ready>
bool spin(std::chrono::microseconds limit, Ready ready) {
  const auto end = std::chrono::steady_clock::now() + limit;
  do {
    for (int i = 0; i < kLooks; ++i) {
      if (ready()) return true;
      relax();
    }
    std::this_thread::yield();
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

}  // namespace

struct ThreadPool::Impl {
  Impl(int count, std::function<void(int)> start) : threads(count), active(count), on_start(std::move(start)) {
    if (on_start) on_start(0);
    if (threads == 1) return;
    limit.emplace(oneapi::tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(threads));
    arena.emplace(threads, 1);
    // Only `this` travels through TBB's queues; everything else is read through the atomics below.
    __tsan_release(this);
    arena->execute([this] {
      for (int i = 1; i < threads; ++i) residents.run([this] { resident(); });
    });
  }

  ~Impl() {
    if (threads == 1) return;
    stop.store(true);
    active.store(0);
    active.notify_all();
    signal.fetch_add(1);
    signal.notify_all();
    arena->execute([this] { residents.wait(); });
    __tsan_acquire(&residents);
  }

  /// Takes one chunk of the current run; false when there is none left.
  bool claim(std::uint64_t& left) {
    std::uint64_t seen = ticket.load(std::memory_order_acquire);
    while ((seen & kLeftMask) != 0) {
      if (ticket.compare_exchange_weak(seen, seen - 1, std::memory_order_acq_rel, std::memory_order_acquire)) {
        left = seen & kLeftMask;
        return true;
      }
    }
    return false;
  }

  /// On the caller's thread: whether the rest of the work is still wanted.
  void ask() {
    if (cancelled != nullptr && *cancelled && !stopped.load(std::memory_order_relaxed) && (*cancelled)())
      stopped.store(true, std::memory_order_relaxed);
  }

  void drain(int worker) {
    std::uint64_t left;
    while (claim(left)) {
      if (worker == 0) ask();
      if (!failed.load(std::memory_order_relaxed) && !stopped.load(std::memory_order_relaxed)) {
        try {
          (*work)(first + (total - left), worker);
        } catch (...) {
          if (!failed.exchange(true)) failure = std::current_exception();
        }
      }
      // Reported even when it failed: the caller must not leave while anybody may still touch `work`.
      if (pending.fetch_sub(1) == 1 && caller_sleeps.load()) pending.notify_all();
    }
  }

  void resident() {
    __tsan_acquire(this);
    const int worker = next_worker.fetch_add(1);
    if (on_start) on_start(worker);
    while (!stop.load(std::memory_order_relaxed)) {
      // Who does not take part sleeps apart from the others, so that a run need not wake it.
      if (const int count = active.load(); worker >= count && !stop.load()) {
        active.wait(count);
        continue;
      }
      drain(worker);
      // Sequentially consistent, like the caller's store: either we see the work or the caller sees the sleeper.
      const auto has_work = [this] { return (ticket.load() & kLeftMask) != 0 || stop.load(); };
      if (spin(kWorkerSpin, has_work)) continue;
      const std::uint32_t before = signal.load();
      sleepers.fetch_add(1);
      if (!has_work()) signal.wait(before);
      sleepers.fetch_sub(1);
    }
    __tsan_release(&residents);
  }

  void run_slice(std::size_t from, std::size_t count, ChunkFunction& function) {
    work = &function;
    first = from;
    total = count;
    pending.store(static_cast<std::uint32_t>(count), std::memory_order_relaxed);
    failed.store(false, std::memory_order_relaxed);
    ++run_number;
    ticket.store(run_number << 32 | count);  // sequentially consistent: ordered against `sleepers` below
    if (sleepers.load() != 0) {
      signal.fetch_add(1);
      signal.notify_all();
    }
    drain(0);
    const auto done = [this] { return pending.load(std::memory_order_acquire) == 0; };
    if (!spin(kCallerSpin, done)) {
      caller_sleeps.store(true);
      for (std::uint32_t seen; (seen = pending.load()) != 0;) pending.wait(seen);
      caller_sleeps.store(false);
    }
    if (failed.load()) std::rethrow_exception(std::exchange(failure, nullptr));
  }

  const int threads;
  std::atomic<int> active;  // of these; workers with higher numbers keep out
  const std::function<void(int)> on_start;
  const std::function<bool()>* cancelled = nullptr;  // of the innermost Cancellation; the caller's alone
  std::atomic<bool> stopped{false};
  std::optional<oneapi::tbb::global_control> limit;
  std::optional<oneapi::tbb::task_arena> arena;
  oneapi::tbb::task_group residents;
  std::atomic<bool> running{false};

  // Written by the caller before `ticket`, read by those who claimed a chunk.
  ChunkFunction* work = nullptr;
  std::size_t first = 0;
  std::size_t total = 0;
  std::uint64_t run_number = 0;
  std::exception_ptr failure;

  // On lines of their own: every thread writes the first two, idle ones read the third.
  alignas(64) std::atomic<std::uint64_t> ticket{0};
  alignas(64) std::atomic<std::uint32_t> pending{0};
  std::atomic<bool> failed{false};
  std::atomic<bool> caller_sleeps{false};
  alignas(64) std::atomic<std::uint32_t> signal{0};
  std::atomic<int> sleepers{0};
  std::atomic<int> next_worker{1};
  std::atomic<bool> stop{false};
};

ThreadPool::ThreadPool(int threads, std::function<void(int worker)> on_start) {
  // More threads than any machine has would only exhaust memory; the limit is TBB's smallest hard limit of workers.
  if (threads < 1 || threads > 256)
    throw Error("the number of threads must be from 1 to 256, not " + std::to_string(threads), ErrorKind::kUsage);
  impl_ = std::make_unique<Impl>(threads, std::move(on_start));
  shares_ = {threads, threads};
}
ThreadPool::~ThreadPool() = default;

int ThreadPool::threads() const { return impl_->active.load(std::memory_order_relaxed); }
int ThreadPool::most_threads() const { return impl_->threads; }

void ThreadPool::set_shares(Shares shares) {
  shares_ = {std::clamp(shares.decode, 1, impl_->threads), std::clamp(shares.prefill, 1, impl_->threads)};
}

void ThreadPool::use_share(std::size_t rows) { use(rows <= kernels::kStreamedRows ? shares_.decode : shares_.prefill); }

void ThreadPool::use(int threads) {
  const int wanted = std::clamp(threads, 1, impl_->threads);
  if (wanted == impl_->active.load(std::memory_order_relaxed)) return;
  impl_->active.store(wanted);
  impl_->active.notify_all();
}

ThreadPool::Cancellation::Cancellation(ThreadPool& pool, const std::function<bool()>& cancelled)
    : pool_(pool), before_(std::exchange(pool.impl_->cancelled, &cancelled)) {
  pool_.impl_->stopped.store(false, std::memory_order_relaxed);
}

ThreadPool::Cancellation::~Cancellation() {
  pool_.impl_->cancelled = before_;
  pool_.impl_->stopped.store(false, std::memory_order_relaxed);
}

bool ThreadPool::Cancellation::stopped() const { return pool_.impl_->stopped.load(std::memory_order_relaxed); }

void ThreadPool::run(std::size_t chunks, ChunkFunction work) {
  if (rehearses_) return;
  if (threads() == 1 || chunks <= 1) {
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
      impl_->ask();
      if (!impl_->stopped.load(std::memory_order_relaxed)) work(chunk, 0);
    }
    return;
  }
  impl_->ask();  // in case others take all chunks
  if (impl_->running.exchange(true, std::memory_order_acquire))
    throw std::logic_error("ThreadPool::run was called while a run was under way");
  struct Finish {
    std::atomic<bool>& running;
    ~Finish() { running.store(false, std::memory_order_release); }
  } finish{impl_->running};
  for (std::size_t from = 0; from < chunks; from += std::min(chunks - from, kMaxChunks))
    impl_->run_slice(from, std::min(chunks - from, kMaxChunks), work);
}

}  // namespace hk::engine
