// Runs speed tests for several settings in turn, each beside the limits of the machine at that moment.
//
// Layer: cli. Settings are interleaved (forwards, then backwards) so that what disturbs one repetition disturbs all of
// them; the peaks are taken right before each run, so that a fraction compares like with like.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "cli/bench/peaks.h"
#include "cli/bench/settings.h"
#include "cli/load_options.h"
#include "cli/profile/profile_options.h"
#include "engine/container/model_reader.h"
#include "engine/generate/model.h"
#include "engine/generate/speed_test.h"
#include "engine/runtime/disturbance.h"
#include "engine/runtime/memory.h"
#include "engine/runtime/profile.h"
#include "engine/runtime/roofline.h"
#include "engine/runtime/thread_pool.h"

namespace hk::cli {

/// Reading prompts, or generating: what was done and how long it took.
struct BenchPhase {
  engine::StageWork work;       ///< of one run
  std::vector<double> seconds;  ///< a value a repetition
  std::vector<BenchPeaks> peaks;
  bool limited_by_memory() const;
  /// Part of the machine's limit, a value a repetition.
  std::vector<double> fractions() const;
};

struct BenchResult {
  BenchSetting setting;
  engine::SpeedTest test;
  BenchPhase prompt, generate;
  std::uint64_t checksum = 0;
  engine::ProcessMemory memory;
  engine::Disturbance disturbance;
  std::size_t tokens() const { return test.sequences * (test.prompt + test.generate); }
  std::vector<double> seconds() const;    ///< both phases
  std::vector<double> rates() const;      ///< tokens a second
  std::vector<double> fractions() const;  ///< of both phases together
};

/// A file that is open, with the models made from it.
struct BenchFile {
  std::string path;
  std::shared_ptr<engine::ModelReader> reader;
  double load_seconds = 0;  ///< until the model could have taken the first token
  engine::ModelInfo info;
};

class BenchRunner {
 public:
  struct Options {
    std::size_t repetitions = 5;
    bool warm_up = true;
    double delay_seconds = 0;
    LoadOptions load{};
    std::optional<std::string> memory_limit{};
    std::function<bool()> cancelled;
    std::function<void(const std::string&)> progress;  ///< what is being done; "" when done
  };
  /// Opens the files. `pool` must outlive it.
  BenchRunner(const std::vector<std::string>& paths, engine::ThreadPool& pool, const kernels::KernelTable& kernels,
              Options options);

  const std::vector<BenchFile>& files() const { return files_; }
  /// Positions every sequence of the coming tests has room for, and how many there are.
  void set_context(std::size_t positions, std::size_t sequences) {
    context_ = positions;
    sequences_ = sequences;
  }
  /// Results in the order of `settings`. Throws hk::Error when two repetitions gave different tokens, or interrupted.
  std::vector<BenchResult> run(const engine::SpeedTest& test, const std::vector<BenchSetting>& settings);
  /// Runs the test once more, listened to; with the machine's limits around it.
  void profile(const engine::SpeedTest& test, const BenchSetting& setting, ProfiledPart& into);
  /// The machine's limits with all threads, now.
  BenchPeaks peaks(int threads);

 private:
  engine::SpeedBed& bed(const BenchSetting& setting);
  void use_threads(const BenchSetting& setting);
  void repeat(BenchResult& result, bool counts, bool keep);
  void say(const std::string& what) const;
  void check_cancelled() const;

  engine::ThreadPool& pool_;
  const kernels::KernelTable& kernels_;
  Options options_;
  std::vector<BenchFile> files_;
  std::map<std::pair<std::size_t, const kernels::KernelTable*>, std::unique_ptr<engine::Model>> models_;
  std::map<std::tuple<std::size_t, const kernels::KernelTable*, kernels::KvType>, std::unique_ptr<engine::SpeedBed>>
      beds_;
  std::unique_ptr<engine::RooflineProbe> probe_;
  std::size_t context_ = 0;
  std::size_t sequences_ = 1;
};

}  // namespace hk::cli
