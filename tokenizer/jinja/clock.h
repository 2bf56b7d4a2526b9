// Clock: where strftime_now gets the time from, and strftime itself in the C locale.
//
// Layer: tokenizer/jinja. Injectable, so that a prompt can be reproduced.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace hk::tokenizer::jinja {

struct ClockReading {
  int year = 1970, month = 1, day = 1;  ///< month and day count from 1
  int hour = 0, minute = 0, second = 0, microsecond = 0;
};

using Clock = std::function<ClockReading()>;

Clock local_clock();  ///< the real local time
Clock fixed_clock(ClockReading reading);
/// "2025-07-09", "2025-07-09T08:05:03" or with a blank instead of T; throws hk::Error naming the text.
ClockReading parse_clock(std::string_view text);

std::string format_time(const ClockReading& reading, std::string_view format);

}  // namespace hk::tokenizer::jinja
