// Files in pieces over the workers (see load_weights.h).
#include "engine/generate/load_weights.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "base/error.h"
#include "engine/container/mapped_file.h"

namespace hk::engine {
namespace {

// What one worker asks the disk for at a time: long enough for its full speed, short enough to be stopped within 100 ms
// on a disk of 80 MB/s.
constexpr std::size_t kPiece = std::size_t{4} << 20;
// Below this part a file counts as not cached. A few pages of a large file are dropped now and then, which is no reason
// to walk through it.
constexpr double kCached = 0.98;

/// Calls work(file, offset, size) for all pieces of all files, over the workers.
class Pieces {
 public:
  Pieces(std::vector<MappedFile*> files, ThreadPool& pool, const LoadControl& control)
      : files_(std::move(files)), pool_(pool), control_(control) {
    for (std::size_t f = 0; f < files_.size(); ++f) {
      const std::size_t size = files_[f]->bytes().size();
      total_ += size;
      for (std::size_t at = 0; at < size; at += kPiece) list_.push_back({f, at, std::min(kPiece, size - at)});
    }
  }

  template <typename Work>
  void run(Work&& work) {
    std::atomic<std::uint64_t> done{0};
    const std::function<bool()> cancelled = [&] {
      if (control_.progress) control_.progress(done.load(std::memory_order_relaxed), total_);
      return control_.cancelled && control_.cancelled();
    };
    const ThreadPool::Cancellation cancellation(pool_, cancelled);
    pool_.run(list_.size(), [&](std::size_t i, int) {
      const Piece& piece = list_[i];
      work(*files_[piece.file], piece.offset, piece.size);
      done.fetch_add(piece.size, std::memory_order_relaxed);
    });
    if (cancelled() || cancellation.stopped()) throw Error("interrupted", ErrorKind::kInterrupted);
  }

 private:
  struct Piece {
    std::size_t file, offset, size;
  };
  std::vector<MappedFile*> files_;
  ThreadPool& pool_;
  const LoadControl& control_;
  std::vector<Piece> list_;
  std::uint64_t total_ = 0;
};

/// The process may use all that its hard limit allows.
void raise_lock_limit() {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_MEMLOCK, &limit);
}

}  // namespace

bool wants_read_ahead(ModelReader& reader, const MachineMemory& memory) {
  const auto usable = memory.usable();
  if (usable && reader.mapped_bytes() > *usable) return false;  // the end would push out the beginning
  return std::ranges::any_of(reader.mapped_files(),
                             [](const MappedFile* file) { return file->cached_part() < kCached; });
}

void load_weights(ModelReader& reader, LoadMode mode, ReadAhead read_ahead, const MachineMemory& memory,
                  ThreadPool& pool, const LoadControl& control) {
  for (const MappedFile* file : reader.mapped_files()) file->prefer_huge_pages();
  Pieces pieces(reader.mapped_files(), pool, control);
  switch (mode) {
    case LoadMode::kMap:
      if (read_ahead == ReadAhead::kOn || (read_ahead == ReadAhead::kAuto && wants_read_ahead(reader, memory)))
        pieces.run([](const MappedFile& file, std::size_t at, std::size_t size) { file.read_ahead(at, size); });
      return;
    case LoadMode::kRead:
      for (MappedFile* file : reader.mapped_files()) file->begin_copy();
      pieces.run([](const MappedFile& file, std::size_t at, std::size_t size) { file.copy_part(at, size); });
      for (MappedFile* file : reader.mapped_files()) file->finish_copy();
      return;
    case LoadMode::kLock:
      raise_lock_limit();
      // The system's refusal comes with the first pieces, before the whole file was read.
      pieces.run([](const MappedFile& file, std::size_t at, std::size_t size) { file.lock(at, size); });
      return;
  }
}

}  // namespace hk::engine
