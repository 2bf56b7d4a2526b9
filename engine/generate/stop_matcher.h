// Finds stop strings in text that arrives in pieces, and never lets out text that may turn out to be part of one.
//
// Layer: engine/generate.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hk::engine {

class StopMatcher {
 public:
  /// Empty strings are ignored.
  explicit StopMatcher(std::vector<std::string> stops);

  /// Text that is safe to show. Once a stop string was found (the one that is complete first; of several, the one that
  /// begins first), everything from its first byte on is dropped and nothing more comes out.
  std::string push(std::string_view text);
  /// What was held back, when the text ends without a stop string.
  std::string finish();

  bool found() const { return found_ != nullptr; }
  /// The stop string that was found.
  std::string_view stop() const { return found_ == nullptr ? std::string_view{} : std::string_view(*found_); }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  const std::string* found_ = nullptr;
};

}  // namespace hk::engine
