// A fixed number of worker threads that share out numbered chunks of work.
//
// Layer: engine/runtime, over oneTBB. One pool a process (several would share the smallest one's limit on TBB's
// threads); a forward pass calls `run` a few times a layer and allocates nothing.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <type_traits>

namespace hk::engine {

/// A borrowed callable: valid only during the call it is passed to.
class ChunkFunction {
 public:
  template <typename F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, ChunkFunction>)
      ChunkFunction(F&& f)  // NOLINT(google-explicit-constructor): lambdas are passed in place
      : object_(const_cast<void*>(static_cast<const void*>(&f))),
        call_([](void* object, std::size_t chunk, int worker) {
          (*static_cast<std::remove_reference_t<F>*>(object))(chunk, worker);
        }) {}
  void operator()(std::size_t chunk, int worker) const { call_(object_, chunk, worker); }

 private:
  void* object_;
  void (*call_)(void*, std::size_t, int);
};

class ThreadPool {
 public:
  /// `threads` >= 1; 1 runs everything on the caller. `on_start` is called once on each thread, the caller's included,
  /// before it works.
  explicit ThreadPool(int threads, std::function<void(int worker)> on_start = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Threads that take part now.
  int threads() const;
  /// Threads that were made: worker numbers are always below.
  int most_threads() const;
  /// How many take part in work that waits for memory (a token of each of a few sequences) and in work that waits for
  /// arithmetic (a prompt). All, until told otherwise.
  struct Shares {
    int decode = 0;
    int prefill = 0;
  };
  void set_shares(Shares shares);
  Shares shares() const { return shares_; }
  /// Takes the share that suits a pass over `rows` rows.
  void use_share(std::size_t rows);
  /// From the next run on, `threads` of them take part; 1 to most_threads(), others are cut to that. The rest sleep.
  void use(int threads);
  /// Calls work(chunk, worker) once for every chunk in [0, chunks), in any order, on any worker in [0, most_threads());
  /// returns when all are done. Chunks are handed out one at a time, so a slow core costs one chunk. An exception from
  /// `work` is rethrown.
  void run(std::size_t chunks, ChunkFunction work);

  /// While one exists, the caller asks `cancelled` before each of its chunks; once it says true, the chunks that are
  /// left of this run and of later ones are passed over. What was to be computed is then not: whoever cancels throws
  /// the results away.
  class Cancellation {
   public:
    /// `cancelled` must outlive it; an empty one never stops.
    Cancellation(ThreadPool& pool, const std::function<bool()>& cancelled);
    ~Cancellation();
    Cancellation(const Cancellation&) = delete;
    Cancellation& operator=(const Cancellation&) = delete;
    bool stopped() const;

   private:
    ThreadPool& pool_;
    const std::function<bool()>* before_;
  };

  /// While one exists, runs do nothing: for finding out what buffers a computation takes.
  class Rehearsal {
   public:
    explicit Rehearsal(ThreadPool& pool) : pool_(pool) { pool_.rehearses_ = true; }
    ~Rehearsal() { pool_.rehearses_ = false; }
    Rehearsal(const Rehearsal&) = delete;
    Rehearsal& operator=(const Rehearsal&) = delete;

   private:
    ThreadPool& pool_;
  };
  bool rehearses() const { return rehearses_; }

 private:
  struct Impl;
  Shares shares_;
  bool rehearses_ = false;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hk::engine
