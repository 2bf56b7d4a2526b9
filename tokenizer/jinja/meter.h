// Meter: the budget of one rendering in steps and live bytes.
//
// Layer: tokenizer/jinja. A template comes with a model file and is not trusted: it may loop for ever or double a
// string until memory is gone. Every node evaluated costs a step, every value made costs steps by its size and holds
// its bytes until it dies. The meter of the running rendering is found through the thread (MeterScope), so that the
// many small functions that make values need no extra parameter; a value made outside a rendering is not metered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace hk::tokenizer::jinja {

struct Meter {
  std::uint64_t steps = 0;
  std::uint64_t max_steps = 0;
  std::size_t live_bytes = 0;
  std::size_t max_live_bytes = 0;

  void step(std::uint64_t count);  ///< throws Failure(kLimit) when the steps are used up
};

/// Meter of the rendering that runs on this thread; null outside.
Meter* current_meter();

/// Charges steps when a rendering runs, for long loops in helpers.
inline void charge_steps(std::uint64_t count) {
  if (Meter* meter = current_meter()) meter->step(count);
}

/// Makes `meter` the current one of this thread for a scope.
class MeterScope {
 public:
  explicit MeterScope(std::shared_ptr<Meter> meter);
  ~MeterScope();
  MeterScope(const MeterScope&) = delete;
  MeterScope& operator=(const MeterScope&) = delete;

 private:
  std::shared_ptr<Meter> previous_;
};

/// Bytes held by one value until it dies.
class Charge {
 public:
  Charge() = default;
  explicit Charge(std::size_t bytes);  ///< throws Failure(kLimit) when the live bytes would exceed the budget
  ~Charge() {
    if (meter_) meter_->live_bytes -= bytes_;
  }
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;

 private:
  std::shared_ptr<Meter> meter_;
  std::size_t bytes_ = 0;
};

}  // namespace hk::tokenizer::jinja
