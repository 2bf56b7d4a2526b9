// The pool: every chunk once, dense worker ids, exceptions, sleeping and waking, and what an empty run costs.
#include "engine/runtime/thread_pool.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <iostream>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/error.h"

namespace hk::engine {
namespace {

class Pool : public testing::TestWithParam<int> {};

TEST_P(Pool, RunsEveryChunkOnceOnAWorkerInRange) {
  ThreadPool pool(GetParam());
  EXPECT_EQ(pool.threads(), GetParam());
  for (const std::size_t chunks : {0, 1, 2, 3, 7, 64, 1001}) {
    std::vector<std::atomic<int>> seen(chunks);
    std::atomic<bool> bad_worker{false};
    pool.run(chunks, [&](std::size_t chunk, int worker) {
      seen[chunk].fetch_add(1);
      if (worker < 0 || worker >= pool.threads()) bad_worker = true;
    });
    for (const auto& count : seen) EXPECT_EQ(count, 1);
    EXPECT_FALSE(bad_worker);
  }
}

TEST_P(Pool, NoTwoChunksShareAWorkerAtOneTime) {
  ThreadPool pool(GetParam());
  std::vector<std::atomic<int>> inside(static_cast<std::size_t>(pool.threads()));
  std::atomic<bool> clash{false};
  for (int round = 0; round < 200; ++round)
    pool.run(16, [&](std::size_t, int worker) {
      if (inside[static_cast<std::size_t>(worker)].fetch_add(1) != 0) clash = true;
      inside[static_cast<std::size_t>(worker)].fetch_sub(1);
    });
  EXPECT_FALSE(clash);
}

TEST_P(Pool, WritesOfARunAreSeenAfterIt) {
  ThreadPool pool(GetParam());
  std::vector<long> values(500, 0);
  for (int round = 1; round <= 2000; ++round)
    pool.run(values.size() / 50, [&](std::size_t chunk, int) {
      for (std::size_t i = chunk * 50; i < chunk * 50 + 50; ++i) values[i] += round;
    });
  for (const long value : values) ASSERT_EQ(value, 2000l * 2001 / 2);
}

TEST_P(Pool, RethrowsAndGoesOnWorking) {
  ThreadPool pool(GetParam());
  for (int round = 0; round < 50; ++round) {
    EXPECT_THROW(pool.run(40,
                          [](std::size_t chunk, int) {
                            if (chunk == 17) throw std::runtime_error("chunk 17");
                          }),
                 std::runtime_error);
    std::atomic<int> done{0};
    pool.run(40, [&](std::size_t, int) { ++done; });
    EXPECT_EQ(done, 40);
  }
}

TEST_P(Pool, WakesAfterASleep) {
  ThreadPool pool(GetParam());
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));  // longer than a worker spins
    std::atomic<int> done{0};
    pool.run(8, [&](std::size_t, int) { ++done; });
    EXPECT_EQ(done, 8);
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, Pool, testing::Values(1, 2, 3, 8), testing::PrintToStringParamName());

TEST(ThreadPool, UsesAllItsThreads) {
  ThreadPool pool(3);
  std::mutex mutex;
  std::vector<int> workers;
  // Each chunk waits until all three are being worked on; were there fewer workers, this would hang, hence the
  // deadline.
  std::atomic<int> arrived{0};
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  pool.run(3, [&](std::size_t, int worker) {
    ++arrived;
    while (arrived < 3 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    const std::lock_guard lock(mutex);
    workers.push_back(worker);
  });
  std::sort(workers.begin(), workers.end());
  EXPECT_EQ(workers, (std::vector<int>{0, 1, 2}));
}

TEST(ThreadPool, ASlowWorkerCostsOneChunk) {
  ThreadPool pool(2);
  std::atomic<int> others{0};
  std::atomic<bool> first{true};
  pool.run(100, [&](std::size_t, int) {
    if (first.exchange(false)) {
      // Sits on its chunk until all the others are done: only possible when chunks are not dealt out in advance.
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (others < 99 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    } else {
      ++others;
    }
  });
  EXPECT_EQ(others, 99);
}

TEST(ThreadPool, ARunAllocatesNothing) {
  ThreadPool pool(2);
  std::atomic<int> done{0};
  pool.run(4, [&](std::size_t, int) { ++done; });  // lets the worker arrive
  const auto in_use = [] { return mallinfo2().uordblks; };
  // Bytes in use, not calls: what a run allocated and freed would not show, what it kept would add up.
  const auto before = in_use();
  for (int i = 0; i < 1000; ++i) pool.run(4, [&](std::size_t, int) { ++done; });
  EXPECT_EQ(in_use(), before);
}

TEST(ThreadPool, RefusesANestedRun) {
  ThreadPool pool(2);
  EXPECT_THROW(pool.run(2, [&](std::size_t, int) { pool.run(2, [](std::size_t, int) {}); }), std::logic_error);
}

TEST(ThreadPool, RefusesUselessSizes) {
  EXPECT_THROW(ThreadPool(0), hk::Error);
  EXPECT_THROW(ThreadPool(-3), hk::Error);
  EXPECT_THROW(ThreadPool(100000), hk::Error);
}

TEST(ThreadPool, ComesAndGoesQuickly) {
  for (int i = 0; i < 50; ++i) ThreadPool pool(1 + i % 4);
}

TEST(ThreadPool, TakesAsManyThreadsAsItIsTold) {
  ThreadPool pool(4);
  EXPECT_EQ(pool.most_threads(), 4);
  for (const int threads : {4, 1, 3, 2, 2, 4, 1, 4}) {
    pool.use(threads);
    EXPECT_EQ(pool.threads(), threads);
    // Whoever was told to rest has heard of it once a moment has passed; then it stays away.
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    for (int round = 0; round < 20; ++round) {
      std::atomic<int> done{0};
      std::atomic<int> highest{0};
      pool.run(64, [&](std::size_t, int worker) {
        ++done;
        for (int seen = highest; worker > seen && !highest.compare_exchange_weak(seen, worker);) {
        }
      });
      EXPECT_EQ(done, 64);
      EXPECT_LT(highest, pool.most_threads());
      if (threads == 1) EXPECT_EQ(highest, 0);
    }
  }
  pool.use(0);
  EXPECT_EQ(pool.threads(), 1);
  pool.use(9);
  EXPECT_EQ(pool.threads(), 4);
}

TEST(ThreadPool, SharesFollowTheRowsOfAPass) {
  ThreadPool pool(3);
  pool.use_share(1);
  EXPECT_EQ(pool.threads(), 3);
  pool.set_shares({1, 2});
  pool.use_share(1);
  EXPECT_EQ(pool.threads(), 1);
  pool.use_share(512);
  EXPECT_EQ(pool.threads(), 2);
  pool.set_shares({7, -1});
  EXPECT_EQ(pool.shares().decode, 3);
  EXPECT_EQ(pool.shares().prefill, 1);
}

TEST(ThreadPool, ChunksLeftAfterACancellationArePassedOver) {
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    std::atomic<int> done{0};
    bool enough = false;
    const std::function<bool()> cancelled = [&] { return enough; };
    {
      const ThreadPool::Cancellation cancellation(pool, cancelled);
      pool.run(100, [&](std::size_t, int) { ++done; });
      EXPECT_EQ(done, 100);
      EXPECT_FALSE(cancellation.stopped());
      enough = true;
      for (int run = 0; run < 50; ++run) pool.run(1000, [&](std::size_t, int) { ++done; });
      EXPECT_TRUE(cancellation.stopped());
      EXPECT_EQ(done, 100);
      done = 0;
      enough = false;  // once said is said
      pool.run(5, [&](std::size_t, int) { ++done; });
      EXPECT_EQ(done, 0);
    }
    pool.run(5, [&](std::size_t, int) { ++done; });
    EXPECT_EQ(done, 5);
    const std::function<bool()> nobody;
    const ThreadPool::Cancellation never(pool, nobody);
    pool.run(5, [&](std::size_t, int) { ++done; });
    EXPECT_EQ(done, 10);
  }
}

TEST(ThreadPool, ARehearsalRunsNothing) {
  ThreadPool pool(2);
  int done = 0;
  {
    const ThreadPool::Rehearsal rehearsal(pool);
    EXPECT_TRUE(pool.rehearses());
    pool.run(100, [&](std::size_t, int) { ++done; });
    pool.run(1, [&](std::size_t, int) { ++done; });
  }
  EXPECT_EQ(done, 0);
  EXPECT_FALSE(pool.rehearses());
  pool.run(1, [&](std::size_t, int) { ++done; });
  EXPECT_EQ(done, 1);
}

TEST(ThreadPool, EveryThreadStartsOnce) {
  for (const int threads : {1, 4}) {
    std::mutex mutex;
    std::vector<int> started;
    std::vector<std::thread::id> ids;
    {
      ThreadPool pool(threads, [&](int worker) {
        const std::scoped_lock lock(mutex);
        started.push_back(worker);
        ids.push_back(std::this_thread::get_id());
      });
      // All of them have come once all have a chunk at the same time.
      std::atomic<int> inside{0};
      pool.run(static_cast<std::size_t>(threads), [&](std::size_t, int) {
        ++inside;
        while (inside < threads) std::this_thread::yield();
      });
    }
    std::sort(started.begin(), started.end());
    ASSERT_EQ(started.size(), static_cast<std::size_t>(threads));
    for (int i = 0; i < threads; ++i) EXPECT_EQ(started[static_cast<std::size_t>(i)], i);
    EXPECT_EQ(ids[0], std::this_thread::get_id());
  }
}

TEST(ThreadPool, EndsWhileSomeRest) {
  for (int i = 0; i < 20; ++i) {
    ThreadPool pool(4);
    pool.use(1 + i % 3);
    if (i % 2 == 0) pool.run(8, [](std::size_t, int) {});
  }
}

double elapsed_us(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

/// Median and 99th percentile of the time of `run`, in microseconds.
template <typename Run>
void print_latency(const char* what, Run run) {
  std::vector<double> times;
  for (int i = 0; i < 5000; ++i) {
    const auto start = std::chrono::steady_clock::now();
    run();
    times.push_back(elapsed_us(start));
  }
  std::sort(times.begin(), times.end());
  std::cout << what << ": median " << times[times.size() / 2] << " us, 99 % " << times[times.size() * 99 / 100]
            << " us\n";
}

// These print and do not judge: the numbers depend on who else is on the machine.
TEST(ThreadPool, Latency) {
  const auto busy = [](std::size_t, int) {
    for (const auto start = std::chrono::steady_clock::now(); elapsed_us(start) < 20;) {
    }
  };
  ThreadPool one(1), two(2);
  print_latency("empty run, 1 thread, 2 chunks", [&] { one.run(2, [](std::size_t, int) {}); });
  print_latency("empty run, 2 threads, 2 chunks", [&] { two.run(2, [](std::size_t, int) {}); });
  print_latency("2 threads, 2 chunks of 20 us each (20 us would be perfect)", [&] { two.run(2, busy); });
  print_latency("the same after 1 ms of rest (worker asleep)", [&] {
    // The rest is inside the measured time; it is subtracted by eye: 1000 us and a timer's slack of about 60.
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    two.run(2, busy);
  });
}

}  // namespace
}  // namespace hk::engine
