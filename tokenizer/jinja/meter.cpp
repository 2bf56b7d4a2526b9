// The budget of one rendering.
#include "tokenizer/jinja/meter.h"

#include <fmt/format.h>

#include <utility>

#include "tokenizer/jinja/failure.h"

namespace hk::tokenizer::jinja {
namespace {

thread_local std::shared_ptr<Meter> t_meter;

constexpr std::size_t kBytesPerStep = 64;  // one cache line moved counts like one node evaluated

}  // namespace

void Meter::step(std::uint64_t count) {
  steps += count;
  if (steps > max_steps)
    fail(FailureKind::kLimit, fmt::format("the template did not finish within {} steps", max_steps));
}

Meter* current_meter() { return t_meter.get(); }

MeterScope::MeterScope(std::shared_ptr<Meter> meter) : previous_(std::exchange(t_meter, std::move(meter))) {}
MeterScope::~MeterScope() { t_meter = std::move(previous_); }

Charge::Charge(std::size_t bytes) {
  if (!t_meter) return;
  t_meter->step(1 + bytes / kBytesPerStep);
  if (bytes > t_meter->max_live_bytes - t_meter->live_bytes)
    fail(FailureKind::kLimit, fmt::format("the template needs more than {} bytes of memory", t_meter->max_live_bytes));
  t_meter->live_bytes += bytes;
  meter_ = t_meter;
  bytes_ = bytes;
}

}  // namespace hk::tokenizer::jinja
