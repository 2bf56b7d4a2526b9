// Where a forward pass spends its time and how much work it does: stages measured while somebody listens.
//
// Layer: engine/runtime. A Profile listens to the whole process (there is one forward pass at a time); stages announce
// themselves with a StageTimer on the thread that drives the pass. Without a listener that costs one look at a pointer.
// Not here: what single workers do. A stage's time is the time until its last worker is done, which is what is paid.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hk::engine {

/// What a stage had to do at least, to be set against what the machine could do in its time.
struct StageWork {
  std::uint64_t bytes = 0;         ///< of weights or cache, read once
  std::uint64_t integer_macs = 0;  ///< multiply-accumulates of int8
  std::uint64_t float_macs = 0;
  StageWork& operator+=(const StageWork& other) {
    bytes += other.bytes;
    integer_macs += other.integer_macs;
    float_macs += other.float_macs;
    return *this;
  }
};

class Profile {
 public:
  using Clock = std::chrono::steady_clock;

  struct Stage {
    std::string name;
    std::string detail;  ///< of which kind: the format of a matrix, the kind of attention; may be empty
    std::uint64_t calls = 0;
    double seconds = 0;
    StageWork work;
  };
  struct Event {
    std::uint32_t stage;  ///< index into stages()
    Clock::time_point begin, end;
  };

  /// What holds stages: a pass, a layer, one half of it. Names are literals.
  struct Span {
    std::string_view name;
    std::uint64_t number;  ///< rows of a pass, index of a layer
    Clock::time_point begin, end;
  };
  struct SpanTotal {
    std::string name;
    bool of_layer;  ///< a half of layers, which together are the layers
    std::uint64_t calls = 0;
    double seconds = 0;
  };

  /// Listens from now to its end. `keep_events` events and as many spans are remembered one by one; totals count all.
  explicit Profile(std::size_t keep_events = 0);
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  /// Who listens now; null: nobody.
  static Profile* active() { return active_; }
  /// Stops listening for a while, or goes on.
  void listen(bool on);
  void clear();

  void record(std::string_view name, std::string_view detail, Clock::time_point begin, Clock::time_point end,
              const StageWork& work);

  void record_span(std::string_view name, bool of_layer, std::uint64_t number, Clock::time_point begin,
                   Clock::time_point end);

  const std::vector<Stage>& stages() const { return stages_; }  ///< in order of first appearance
  const std::vector<Span>& spans() const { return spans_; }
  const std::vector<SpanTotal>& span_totals() const { return span_totals_; }
  const std::vector<Event>& events() const { return events_; }
  Clock::time_point start() const { return start_; }
  std::uint64_t events_dropped() const { return events_dropped_; }
  StageWork work() const;  ///< of all stages
  double seconds() const;  ///< of all stages

 private:
  static inline Profile* active_ = nullptr;

  std::vector<Stage> stages_;
  std::vector<Event> events_;
  std::vector<Span> spans_;
  std::vector<SpanTotal> span_totals_;
  std::size_t keep_events_;
  std::uint64_t events_dropped_ = 0;
  Profile* before_;
  Clock::time_point start_ = Clock::now();
};

/// Measures from its making to its end, or to `next`. Names must outlive it.
class StageTimer {
 public:
  explicit StageTimer(std::string_view name, std::string_view detail = {})
      : profile_(Profile::active()), name_(name), detail_(detail) {
    if (profile_ != nullptr) begin_ = Profile::Clock::now();
  }
  ~StageTimer() { stop(); }
  StageTimer(const StageTimer&) = delete;
  StageTimer& operator=(const StageTimer&) = delete;

  bool listening() const { return profile_ != nullptr; }
  void add(const StageWork& work) { work_ += work; }
  /// The stage ends here and another begins.
  void next(std::string_view name, std::string_view detail = {}) {
    if (profile_ == nullptr) return;
    const auto now = Profile::Clock::now();
    profile_->record(name_, detail_, begin_, now, work_);
    name_ = name;
    detail_ = detail;
    begin_ = now;
    work_ = {};
  }
  void stop() {
    if (profile_ != nullptr) profile_->record(name_, detail_, begin_, Profile::Clock::now(), work_);
    profile_ = nullptr;
  }

 private:
  Profile* profile_;
  std::string_view name_, detail_;
  Profile::Clock::time_point begin_;
  StageWork work_;
};

/// Measures what holds stages, from its making to its end. `name` is a literal.
class SpanTimer {
 public:
  explicit SpanTimer(std::string_view name, std::uint64_t number = 0, bool of_layer = false)
      : profile_(Profile::active()), name_(name), number_(number), of_layer_(of_layer) {
    if (profile_ != nullptr) begin_ = Profile::Clock::now();
  }
  ~SpanTimer() {
    if (profile_ != nullptr) profile_->record_span(name_, of_layer_, number_, begin_, Profile::Clock::now());
  }
  SpanTimer(const SpanTimer&) = delete;
  SpanTimer& operator=(const SpanTimer&) = delete;

 private:
  Profile* profile_;
  std::string_view name_;
  std::uint64_t number_;
  bool of_layer_;
  Profile::Clock::time_point begin_;
};

}  // namespace hk::engine
