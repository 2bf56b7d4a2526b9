// Fields and columns of the two tables (see report.h).
#include "cli/bench/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "cli/text.h"
#include "engine/runtime/statistics.h"

namespace hk::cli {
namespace {

using engine::Spread;
using engine::spread_of;

std::int64_t integer(std::uint64_t value) { return static_cast<std::int64_t>(value); }

/// The storage type that most of the bytes have.
std::string_view main_type(const engine::ModelReader& reader) {
  std::map<kernels::StorageType, std::uint64_t> bytes;
  for (const auto& tensor : reader.tensors()) bytes[tensor.type] += tensor.data.size();
  const auto most =
      std::max_element(bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == bytes.end() ? "" : kernels::storage_type_name(most->first);
}

std::string model_type(const BenchFile& file) {
  return fmt::format("{} {} {}", file.info.architecture, count_text(file.info.parameters), main_type(*file.reader));
}

std::vector<double> scaled(std::vector<double> values, double factor) {
  for (double& v : values) v *= factor;
  return values;
}

/// `amount` over the time of each repetition, in 10^9 a second; the middle one.
double giga_rate(std::uint64_t amount, std::vector<double> seconds) {
  for (double& v : seconds) v = v > 0 ? static_cast<double>(amount) / v * 1e-9 : 0;
  return spread_of(std::move(seconds)).median;
}

double median_of(const std::vector<BenchPeaks>& peaks, double BenchPeaks::*member) {
  std::vector<double> values;
  for (const BenchPeaks& p : peaks) values.push_back(p.*member);
  return spread_of(std::move(values)).median;
}

std::string threads_text(const BenchSetting& setting) {
  return setting.threads == setting.threads_batch ? fmt::format("{}", setting.threads)
                                                  : fmt::format("{}/{}", setting.threads, setting.threads_batch);
}

void add_setting(BenchRow& row, const BenchContext& context, const BenchFile& file, const BenchSetting& setting) {
  row.fields.push_back({"version", std::string(HK_VERSION)});
  row.fields.push_back({"cpu_info", context.cpu});
  row.fields.push_back({"backends", std::string("CPU")});
  row.fields.push_back({"kernels", std::string(setting.kernels->level)});
  row.fields.push_back({"model_filename", file.path});
  row.fields.push_back({"model_type", model_type(file)});
  row.fields.push_back({"model_size", integer(file.info.weight_bytes)});
  row.fields.push_back({"model_n_params", integer(file.info.parameters)});
  row.fields.push_back({"load_ns", integer(static_cast<std::uint64_t>(file.load_seconds * 1e9))});
  row.fields.push_back({"n_batch", integer(setting.chunk)});
  row.fields.push_back({"n_threads", std::int64_t{setting.threads}});
  row.fields.push_back({"n_threads_batch", std::int64_t{setting.threads_batch}});
  row.fields.push_back({"type_k", std::string(kernels::kv_type_name(setting.kv))});
  row.fields.push_back({"type_v", std::string(kernels::kv_type_name(setting.kv))});

  row.columns.push_back({"model", printable(file_name(file.path)), 20});
  row.columns.push_back({"type", model_type(file), 18});
  row.columns.push_back({"size", bytes_text(file.info.weight_bytes), 9});
  row.columns.push_back({"threads", threads_text(setting), 7});
  if (context.many_kernels) row.columns.push_back({"kernels", std::string(setting.kernels->level), 11});
  if (context.many_kv) row.columns.push_back({"kv", std::string(kernels::kv_type_name(setting.kv)), 4});
  if (context.many_chunks) row.columns.push_back({"batch", fmt::format("{}", setting.chunk), 5});
}

void add_machine(BenchRow& row, const BenchResult& result) {
  const BenchPhase& phase = result.test.generate != 0 ? result.generate : result.prompt;
  row.fields.push_back({"peak_read_gbs", median_of(phase.peaks, &BenchPeaks::read)});
  row.fields.push_back({"peak_int8_gmacs", median_of(phase.peaks, &BenchPeaks::int8_dot)});
  row.fields.push_back({"peak_f32_gmacs", median_of(phase.peaks, &BenchPeaks::f32_fma)});
  row.fields.push_back({"private_bytes", integer(result.memory.private_bytes)});
  row.fields.push_back({"mapped_bytes", integer(result.memory.mapped_bytes)});
  row.fields.push_back({"steal_fraction", result.disturbance.steal});
  row.fields.push_back({"other_cpus", result.disturbance.others});
  row.fields.push_back({"throttled_fraction", result.disturbance.throttled});
  row.fields.push_back({"clock_change", result.disturbance.clock_change});
  row.fields.push_back({"checksum", fmt::format("{:016x}", result.checksum)});
}

std::string percent(double fraction) { return fmt::format("{:.1f} %", 100 * fraction); }

engine::PairedRatio ratio_of(const BenchResult& reference, const BenchResult& result) {
  return engine::paired_ratio(reference.rates(), result.rates());
}

std::string_view verdict_word(const engine::PairedRatio& ratio) {
  return !ratio.differs() ? "same" : ratio.ratio > 1 ? "faster" : "slower";
}

}  // namespace

std::string file_name(const std::string& path) { return std::filesystem::path(path).filename().string(); }

std::string setting_name(const BenchContext& context, const BenchFile& file, const BenchSetting& setting) {
  std::string name = fmt::format("{}, {} threads", printable(file_name(file.path)), threads_text(setting));
  if (context.many_kernels) name += fmt::format(", {}", setting.kernels->level);
  if (context.many_kv) name += fmt::format(", {} cache", kernels::kv_type_name(setting.kv));
  if (context.many_chunks) name += fmt::format(", batch {}", setting.chunk);
  return name;
}

BenchRow speed_row(const BenchContext& context, const BenchFile& file, const BenchResult& result,
                   const BenchResult* reference) {
  BenchRow row;
  add_setting(row, context, file, result.setting);
  const auto& test = result.test;
  const Spread rate = spread_of(result.rates());
  const Spread time = spread_of(scaled(result.seconds(), 1e9));
  engine::StageWork work = result.prompt.work;
  work += result.generate.work;
  const std::uint64_t macs = work.integer_macs + work.float_macs;
  const double gbs = giga_rate(work.bytes, result.seconds()), gmacs = giga_rate(macs, result.seconds());
  const Spread fraction = spread_of(result.fractions());
  const BenchPhase& longer = spread_of(result.prompt.seconds).median > spread_of(result.generate.seconds).median
                                 ? result.prompt
                                 : result.generate;
  const char* bound = longer.limited_by_memory() ? "memory" : "arithmetic";
  const double first_token = test.prompt == 0 ? 0 : spread_of(result.prompt.seconds).median;

  row.fields.push_back({"n_prompt", integer(test.prompt)});
  row.fields.push_back({"n_gen", integer(test.generate)});
  row.fields.push_back({"n_depth", integer(test.depth)});
  row.fields.push_back({"test_time", context.started});
  row.fields.push_back({"avg_ns", integer(static_cast<std::uint64_t>(time.mean))});
  row.fields.push_back({"stddev_ns", integer(static_cast<std::uint64_t>(time.deviation))});
  row.fields.push_back({"avg_ts", rate.mean});
  row.fields.push_back({"stddev_ts", rate.deviation});
  row.fields.push_back({"median_ts", rate.median});
  row.fields.push_back({"low_ts", rate.interval.low});
  row.fields.push_back({"high_ts", rate.interval.high});
  row.fields.push_back({"first_token_ns", integer(static_cast<std::uint64_t>(first_token * 1e9))});
  row.fields.push_back({"gbs", gbs});
  row.fields.push_back({"gmacs", gmacs});
  row.fields.push_back({"peak_fraction", fraction.median});
  row.fields.push_back({"limited_by", std::string(bound)});
  add_machine(row, result);
  const engine::PairedRatio ratio = reference == nullptr ? engine::PairedRatio{} : ratio_of(*reference, result);
  row.fields.push_back({"ratio", ratio.ratio});
  row.fields.push_back({"ratio_low", reference == nullptr ? 1 : ratio.interval.low});
  row.fields.push_back({"ratio_high", reference == nullptr ? 1 : ratio.interval.high});
  row.fields.push_back({"verdict", std::string(reference == nullptr ? "reference" : verdict_word(ratio))});
  row.fields.push_back({"samples_ns", scaled(result.seconds(), 1e9)});
  row.fields.push_back({"samples_ts", result.rates()});

  row.columns.push_back({"test", test_name(test), 14});
  row.columns.push_back({"t/s", fmt::format("{:.2f} ± {:.2f}", rate.mean, rate.deviation), 16});
  row.columns.push_back({"median [interval]",
                         fmt::format("{:.2f} [{:.2f}..{:.2f}]", rate.median, rate.interval.low, rate.interval.high),
                         27});
  row.columns.push_back({"GB/s", fmt::format("{:.1f}", gbs), 5});
  row.columns.push_back({"GMAC/s", fmt::format("{:.1f}", gmacs), 6});
  row.columns.push_back({"of peak", percent(fraction.median), 7});
  row.columns.push_back({"limit", bound, 10});
  row.columns.push_back({"ids", fmt::format("{:08x}", result.checksum >> 32), 8});
  return row;
}

BenchRow batch_row(const BenchContext& context, const BenchFile& file, const BenchResult& result) {
  BenchRow row;
  add_setting(row, context, file, result.setting);
  const auto& test = result.test;
  const std::size_t n = test.sequences;
  const double t_pp = spread_of(result.prompt.seconds).median, t_tg = spread_of(result.generate.seconds).median;
  const double total = spread_of(result.seconds()).median;
  const auto rate = [](std::size_t tokens, double seconds) {
    return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
  };
  const double pp_peak = test.prompt == 0 ? 0 : spread_of(result.prompt.fractions()).median;
  const double tg_peak = test.generate == 0 ? 0 : spread_of(result.generate.fractions()).median;
  const double s_pp = rate(n * test.prompt, t_pp), s_tg = rate(n * test.generate, t_tg);
  const std::size_t n_kv = n * test.positions();

  row.fields.push_back({"n_depth", integer(test.depth)});
  row.fields.push_back({"test_time", context.started});
  row.fields.push_back({"pp", integer(test.prompt)});
  row.fields.push_back({"tg", integer(test.generate)});
  row.fields.push_back({"pl", integer(n)});
  row.fields.push_back({"n_kv", integer(n_kv)});
  row.fields.push_back({"t_pp", t_pp});
  row.fields.push_back({"speed_pp", s_pp});
  row.fields.push_back({"t_tg", t_tg});
  row.fields.push_back({"speed_tg", s_tg});
  row.fields.push_back({"t", total});
  row.fields.push_back({"speed", rate(result.tokens(), total)});
  row.fields.push_back({"peak_fraction_pp", pp_peak});
  row.fields.push_back({"peak_fraction_tg", tg_peak});
  add_machine(row, result);

  row.columns.push_back({"PP", fmt::format("{}", test.prompt), 6});
  row.columns.push_back({"TG", fmt::format("{}", test.generate), 6});
  row.columns.push_back({"B", fmt::format("{}", n), 4});
  row.columns.push_back({"N_KV", fmt::format("{}", n_kv), 6});
  row.columns.push_back({"T_PP s", fmt::format("{:.3f}", t_pp), 8});
  row.columns.push_back({"S_PP t/s", fmt::format("{:.2f}", s_pp), 8});
  row.columns.push_back({"of peak", percent(pp_peak), 7});
  row.columns.push_back({"T_TG s", fmt::format("{:.3f}", t_tg), 8});
  row.columns.push_back({"S_TG t/s", fmt::format("{:.2f}", s_tg), 8});
  row.columns.push_back({"of peak", percent(tg_peak), 7});
  row.columns.push_back({"limit", result.generate.limited_by_memory() ? "memory" : "arithmetic", 10});
  row.columns.push_back({"T s", fmt::format("{:.3f}", total), 8});
  row.columns.push_back({"S t/s", fmt::format("{:.2f}", rate(result.tokens(), total)), 8});
  return row;
}

std::string verdict(const BenchResult& reference, const BenchResult& result, const std::string& reference_name,
                    const std::string& name) {
  const engine::PairedRatio ratio = ratio_of(reference, result);
  const std::string numbers =
      fmt::format("{:.3f} [{:.3f}..{:.3f}]", ratio.ratio, ratio.interval.low, ratio.interval.high);
  const std::string test = test_name(result.test);
  if (result.prompt.seconds.size() < 2)
    return fmt::format("{}: one repetition says nothing about a difference between ({}) and ({})", test, name,
                       reference_name);
  if (!ratio.differs())
    return fmt::format("{}: no difference shows between ({}) and ({}): ratio {}", test, name, reference_name, numbers);
  return fmt::format("{}: ({}) is {} than ({}): {} times as fast", test, name, verdict_word(ratio), reference_name,
                     numbers);
}

}  // namespace hk::cli
