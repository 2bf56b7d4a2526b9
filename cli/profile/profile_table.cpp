// A profile as a table (see profile_table.h).
#include "cli/profile/profile_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace hk::cli {
namespace {

using Stage = engine::Profile::Stage;

std::string time_text(double seconds) {
  return seconds < 1 ? fmt::format("{:.2f} ms", 1e3 * seconds) : fmt::format("{:.3f} s", seconds);
}

double share(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

std::string rate(std::uint64_t amount, double seconds) {
  return amount == 0 || seconds <= 0 ? "" : fmt::format("{:.1f}", static_cast<double>(amount) / seconds * 1e-9);
}

std::string row(std::string_view name, std::string_view kernel, std::string_view calls, std::string_view time,
                std::string_view part, std::string_view bytes, std::string_view macs, std::string_view of_peak) {
  return fmt::format("{:<20} {:<9} {:>8} {:>12} {:>8} {:>8} {:>8} {:>8}\n", name, kernel, calls, time, part, bytes,
                     macs, of_peak);
}

std::string stage_row(const Stage& stage, const ProfiledPart& part) {
  const double least = part.peaks.seconds_for(stage.work);
  return row(stage.name, stage.detail, fmt::format("{}", stage.calls), time_text(stage.seconds),
             fmt::format("{:.1f} %", share(stage.seconds, part.seconds)), rate(stage.work.bytes, stage.seconds),
             rate(stage.work.integer_macs + stage.work.float_macs, stage.seconds),
             least > 0 ? fmt::format("{:.1f} %", share(least, stage.seconds)) : "");
}

}  // namespace

std::string profile_table(const ProfiledPart& part) {
  std::string out = fmt::format("\nprofile, {}: {} tokens in {}", part.name, part.tokens, time_text(part.seconds));
  if (part.peaks.read > 0)
    out += fmt::format("; the machine now: {:.1f} GB/s, {:.0f} GMAC/s int8, {:.0f} GMAC/s f32", part.peaks.read,
                       part.peaks.int8_dot, part.peaks.f32_fma);
  out += "\n" + row("stage", "kernel", "calls", "time", "part", "GB/s", "GMAC/s", "of peak");
  std::vector<const Stage*> stages;
  for (const Stage& stage : part.profile.stages()) stages.push_back(&stage);
  std::ranges::sort(stages, std::ranges::greater{}, &Stage::seconds);
  for (const Stage* stage : stages) out += stage_row(*stage, part);
  // Sampling, text, and the hand-over between stages.
  const double rest = std::max(0.0, part.seconds - part.profile.seconds());
  out +=
      row("outside of stages", "", "", time_text(rest), fmt::format("{:.1f} %", share(rest, part.seconds)), "", "", "");
  std::string kinds;
  for (const auto& total : part.profile.span_totals()) {
    if (!total.of_layer) continue;
    kinds += fmt::format("{}{} {} ({:.1f} %)", kinds.empty() ? "" : ", ", total.name, time_text(total.seconds),
                         share(total.seconds, part.seconds));
  }
  if (!kinds.empty()) out += fmt::format("halves of layers: {}\n", kinds);
  return out;
}

}  // namespace hk::cli
