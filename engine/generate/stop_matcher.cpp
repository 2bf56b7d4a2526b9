// Stop strings across piece borders.
#include "engine/generate/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace hk::engine {

StopMatcher::StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) { std::erase(stops_, ""); }

std::string StopMatcher::push(std::string_view text) {
  if (found()) return {};
  held_ += text;
  std::size_t begin = std::string::npos, end = std::string::npos;
  for (const auto& stop : stops_) {
    const auto at = held_.find(stop);
    if (at == std::string::npos) continue;
    // How the text was cut into pieces must not matter: the earliest end decides, as if it had come byte by byte.
    if (at + stop.size() > end || (at + stop.size() == end && at >= begin)) continue;
    begin = at;
    end = at + stop.size();
    found_ = &stop;
  }
  std::string out;
  if (found()) {
    out = held_.substr(0, begin);
    held_.clear();
    return out;
  }
  // Hold back the longest end of the text that a stop string begins with.
  std::size_t hold = 0;
  for (const auto& stop : stops_)
    for (std::size_t length = std::min(stop.size() - 1, held_.size()); length > hold; --length)
      if (std::string_view(held_).substr(held_.size() - length) == std::string_view(stop).substr(0, length))
        hold = length;
  out = held_.substr(0, held_.size() - hold);
  held_.erase(0, held_.size() - hold);
  return out;
}

std::string StopMatcher::finish() { return std::exchange(held_, {}); }

}  // namespace hk::engine
