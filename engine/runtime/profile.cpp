// Sums and events of a profile (see profile.h).
#include "engine/runtime/profile.h"

#include <algorithm>

namespace hk::engine {

Profile::Profile(std::size_t keep_events) : keep_events_(keep_events), before_(active_) { active_ = this; }

Profile::~Profile() { active_ = before_; }

void Profile::listen(bool on) { active_ = on ? this : before_; }

void Profile::clear() {
  stages_.clear();
  events_.clear();
  spans_.clear();
  span_totals_.clear();
  events_dropped_ = 0;
  start_ = Clock::now();
}

void Profile::record(std::string_view name, std::string_view detail, Clock::time_point begin, Clock::time_point end,
                     const StageWork& work) {
  // A pass has a dozen stages: looking through them costs less than hashing a name.
  auto stage = std::find_if(stages_.begin(), stages_.end(),
                            [&](const Stage& s) { return s.name == name && s.detail == detail; });
  if (stage == stages_.end()) {
    stages_.push_back({std::string(name), std::string(detail), 0, 0, {}});
    stage = stages_.end() - 1;
  }
  ++stage->calls;
  stage->seconds += std::chrono::duration<double>(end - begin).count();
  stage->work += work;
  if (events_.size() < keep_events_) {
    events_.push_back({static_cast<std::uint32_t>(stage - stages_.begin()), begin, end});
  } else if (keep_events_ != 0) {
    ++events_dropped_;
  }
}

void Profile::record_span(std::string_view name, bool of_layer, std::uint64_t number, Clock::time_point begin,
                          Clock::time_point end) {
  auto total = std::ranges::find(span_totals_, name, &SpanTotal::name);
  if (total == span_totals_.end()) {
    span_totals_.push_back({std::string(name), of_layer, 0, 0});
    total = span_totals_.end() - 1;
  }
  ++total->calls;
  total->seconds += std::chrono::duration<double>(end - begin).count();
  if (spans_.size() < keep_events_) spans_.push_back({name, number, begin, end});
}

StageWork Profile::work() const {
  StageWork sum;
  for (const Stage& stage : stages_) sum += stage.work;
  return sum;
}

double Profile::seconds() const {
  double sum = 0;
  for (const Stage& stage : stages_) sum += stage.seconds;
  return sum;
}

}  // namespace hk::engine
