// Interleaved repetitions and what they are set against (see measure.h).
#include "cli/bench/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "base/error.h"
#include "cli/model_options.h"
#include "engine/container/vocabulary.h"
#include "models/open.h"

namespace hk::cli {

bool BenchPhase::limited_by_memory() const {
  if (peaks.empty()) return true;
  engine::StageWork arithmetic = work;
  arithmetic.bytes = 0;
  return peaks[0].seconds_for(work) > peaks[0].seconds_for(arithmetic);
}

std::vector<double> BenchPhase::fractions() const {
  std::vector<double> values;
  for (std::size_t i = 0; i < seconds.size(); ++i)
    values.push_back(seconds[i] > 0 ? peaks[i].seconds_for(work) / seconds[i] : 0);
  return values;
}

std::vector<double> BenchResult::seconds() const {
  std::vector<double> values(std::max(prompt.seconds.size(), generate.seconds.size()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = prompt.seconds[i] + generate.seconds[i];
  return values;
}

std::vector<double> BenchResult::rates() const {
  std::vector<double> values = seconds();
  for (double& v : values) v = v > 0 ? static_cast<double>(tokens()) / v : 0;
  return values;
}

std::vector<double> BenchResult::fractions() const {
  std::vector<double> values = seconds();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double least = prompt.peaks[i].seconds_for(prompt.work) + generate.peaks[i].seconds_for(generate.work);
    values[i] = values[i] > 0 ? least / values[i] : 0;
  }
  return values;
}

BenchRunner::BenchRunner(const std::vector<std::string>& paths, engine::ThreadPool& pool,
                         const kernels::KernelTable& kernels, Options options)
    : pool_(pool), kernels_(kernels), options_(std::move(options)) {
  for (const std::string& path : paths) {
    const auto start = std::chrono::steady_clock::now();
    BenchFile file;
    file.path = path;
    file.reader = engine::open_model(path);
    // Not needed here, but whoever asks for a first token waits for it.
    if (file.reader->metadata().array_size("tokenizer.ggml.tokens") != 0) engine::make_tokenizer(*file.reader);
    auto model = models::open(file.reader, pool_, kernels_);
    if (options_.load.mode() != engine::LoadMode::kMap)
      plan_model_memory(*model, *file.reader, {{1}, 1, 1, true, options_.load.mode(), options_.memory_limit});
    options_.load.bring_weights(*file.reader, pool_);
    file.load_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    file.info = model->info();
    models_.emplace(std::pair(files_.size(), &kernels_), std::move(model));
    files_.push_back(std::move(file));
  }
}

engine::SpeedBed& BenchRunner::bed(const BenchSetting& setting) {
  auto& model = models_[{setting.file, setting.kernels}];
  if (model == nullptr) model = models::open(files_[setting.file].reader, pool_, *setting.kernels);
  auto& bed = beds_[{setting.file, setting.kernels, setting.kv}];
  if (bed == nullptr) {
    // The depth is kept once more beside the sequences that go on from it.
    const auto weights =
        options_.load.mode() == engine::LoadMode::kMap ? std::optional(engine::LoadMode::kMap) : std::nullopt;
    plan_model_memory(*model, *files_[setting.file].reader,
                      {{context_, setting.kv}, sequences_ + 1, sequences_, true, weights, options_.memory_limit});
    bed = std::make_unique<engine::SpeedBed>(*model,
                                             engine::SequenceOptions{std::max<std::size_t>(1, context_), setting.kv});
  }
  return *bed;
}

BenchPeaks BenchRunner::peaks(int threads) {
  pool_.use(pool_.most_threads());
  if (probe_ == nullptr) probe_ = std::make_unique<engine::RooflineProbe>(kernels_, pool_);
  pool_.use(threads);
  return measure_peaks(*probe_);
}

void BenchRunner::use_threads(const BenchSetting& setting) {
  pool_.set_shares({setting.threads, setting.threads_batch});
}

void BenchRunner::say(const std::string& what) const {
  if (options_.progress) options_.progress(what);
}

void BenchRunner::check_cancelled() const {
  if (options_.cancelled && options_.cancelled()) throw Error("interrupted", ErrorKind::kInterrupted);
}

/// One run. `counts`: its work is counted; `keep`: its times are.
void BenchRunner::repeat(BenchResult& result, bool counts, bool keep) {
  check_cancelled();
  const BenchSetting& setting = result.setting;
  const engine::SpeedTest& test = result.test;
  engine::SpeedBed& ground = bed(setting);
  use_threads(setting);
  if (!ground.prepare(test, options_.cancelled)) throw Error("interrupted", ErrorKind::kInterrupted);
  BenchPeaks prompt_peaks, generate_peaks;
  if (keep) {
    if (test.generate != 0) generate_peaks = peaks(setting.threads);
    const bool same = test.generate != 0 && setting.threads == setting.threads_batch;
    if (test.prompt != 0) prompt_peaks = same ? generate_peaks : peaks(setting.threads_batch);
  }
  std::optional<engine::SpeedSample> sample;
  if (counts) {
    engine::Profile profile;
    sample = ground.run(test, options_.cancelled, [&] {
      result.prompt.work = profile.work();
      profile.clear();
    });
    result.generate.work = profile.work();
  } else {
    sample = ground.run(test, options_.cancelled);
  }
  if (!sample) throw Error("interrupted", ErrorKind::kInterrupted);
  if (result.checksum != 0 && result.checksum != sample->checksum)
    throw Error(fmt::format("{}: {} gave other tokens when it was repeated (checksum {:016x}, before {:016x})",
                            files_[setting.file].path, test_name(test), sample->checksum, result.checksum));
  result.checksum = sample->checksum;
  if (!keep) return;
  result.prompt.seconds.push_back(sample->prompt_seconds);
  result.prompt.peaks.push_back(prompt_peaks);
  result.generate.seconds.push_back(sample->generate_seconds);
  result.generate.peaks.push_back(generate_peaks);
}

std::vector<BenchResult> BenchRunner::run(const engine::SpeedTest& test, const std::vector<BenchSetting>& settings) {
  std::vector<BenchResult> results(settings.size());
  for (std::size_t i = 0; i < settings.size(); ++i) {
    results[i].setting = settings[i];
    results[i].test = test;
    results[i].test.chunk = settings[i].chunk;
    if (!options_.warm_up) continue;
    say(fmt::format("{}: warm-up {} of {}", test_name(test), i + 1, settings.size()));
    repeat(results[i], true, false);
  }
  peaks(pool_.most_threads());  // made before anything is watched
  engine::DisturbanceWatch watch;
  for (std::size_t repetition = 0; repetition < options_.repetitions; ++repetition) {
    say(fmt::format("{}: repetition {} of {}", test_name(test), repetition + 1, options_.repetitions));
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (options_.delay_seconds > 0)
        std::this_thread::sleep_for(std::chrono::duration<double>(options_.delay_seconds));
      BenchResult& result = results[repetition % 2 == 0 ? i : results.size() - 1 - i];
      repeat(result, !options_.warm_up && repetition == 0, true);
      watch.look();
    }
  }
  engine::ProcessMemory memory = engine::process_memory();
  memory.private_bytes -= std::min<std::uint64_t>(memory.private_bytes, probe_->buffer_bytes());
  const engine::Disturbance disturbance = watch.sum();
  for (BenchResult& result : results) {
    result.memory = memory;
    result.disturbance = disturbance;
  }
  say("");
  return results;
}

void BenchRunner::profile(const engine::SpeedTest& test, const BenchSetting& setting, ProfiledPart& into) {
  use_threads(setting);
  into.profile.listen(false);
  engine::SpeedTest as_set = test;
  as_set.chunk = setting.chunk;
  engine::SpeedBed& ground = bed(setting);
  if (!ground.prepare(as_set, options_.cancelled)) throw Error("interrupted", ErrorKind::kInterrupted);
  into.peaks = peaks(test.generate != 0 ? setting.threads : setting.threads_batch);
  into.profile.listen(true);
  const auto sample = ground.run(as_set, options_.cancelled);
  into.profile.listen(false);
  if (!sample) throw Error("interrupted", ErrorKind::kInterrupted);
  into.tokens = test.sequences * (test.prompt + test.generate);
  into.seconds = sample->seconds();
}

}  // namespace hk::cli
