// Local time and strftime.
#include "tokenizer/jinja/clock.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <ctime>

#include "base/error.h"

namespace hk::tokenizer::jinja {
namespace {

constexpr std::array<const char*, 7> kDays = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                              "Thursday", "Friday", "Saturday"};
constexpr std::array<const char*, 12> kMonths = {"January", "February", "March",     "April",   "May",      "June",
                                                 "July",    "August",   "September", "October", "November", "December"};

bool is_leap(int year) { return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0; }

int days_in_month(int year, int month) {
  static constexpr std::array<int, 12> kLength = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return month == 2 && is_leap(year) ? 29 : kLength[static_cast<std::size_t>(month - 1)];
}

/// Days since 1970-01-01 by counting; years are four digits at most.
std::int64_t days_since_epoch(const ClockReading& reading) {
  std::int64_t days = 0;
  for (int year = 1970; year < reading.year; ++year) days += is_leap(year) ? 366 : 365;
  for (int year = reading.year; year < 1970; ++year) days -= is_leap(year) ? 366 : 365;
  for (int month = 1; month < reading.month; ++month) days += days_in_month(reading.year, month);
  return days + reading.day - 1;
}

class Formatter {
 public:
  explicit Formatter(const ClockReading& reading) : now_(reading) {
    const std::int64_t days = days_since_epoch(now_);
    weekday_ = static_cast<int>(((days + 4) % 7 + 7) % 7);  // 1970-01-01 was a Thursday
    ClockReading new_year = now_;
    new_year.month = new_year.day = 1;
    year_day_ = static_cast<int>(days - days_since_epoch(new_year));
    seconds_ = days * 86400 + now_.hour * 3600 + now_.minute * 60 + now_.second;
  }

  std::string run(std::string_view format) {
    std::string out;
    for (std::size_t i = 0; i < format.size(); ++i) {
      if (format[i] != '%' || i + 1 == format.size()) {
        out += format[i];
        continue;
      }
      const std::size_t start = i++;
      flag_ = 0;
      while (i < format.size() && std::string_view("-_0^#").find(format[i]) != std::string_view::npos)
        flag_ = format[i++];
      std::size_t width = 0;
      while (i < format.size() && format[i] >= '0' && format[i] <= '9' && width < 100)
        width = width * 10 + static_cast<std::size_t>(format[i++] - '0');
      if (i < format.size() && (format[i] == 'E' || format[i] == 'O')) ++i;
      std::string piece;
      if (i >= format.size() || !put(piece, format[i])) {
        out += format.substr(start, i - start + 1);
        continue;
      }
      if (flag_ == '^')
        for (char& c : piece) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
      if (piece.size() < width) piece.insert(0, width - piece.size(), numeric_ && flag_ != '_' ? '0' : ' ');
      out += piece;
    }
    return out;
  }

 private:
  void number(std::string& out, std::int64_t value, int width, char pad = '0') {
    numeric_ = true;
    if (flag_ == '-') {
      out += fmt::format("{}", value);
      return;
    }
    if (flag_ == '_') pad = ' ';
    if (flag_ == '0') pad = '0';
    out += pad == '0' ? fmt::format("{:0{}}", value, width) : fmt::format("{:{}}", value, width);
  }

  int iso_week(int& iso_year) const {
    const int monday_based = (weekday_ + 6) % 7;
    int week = (year_day_ - monday_based + 10) / 7;
    iso_year = now_.year;
    const auto weeks_of = [](int year, int weekday_of_new_year) {
      return weekday_of_new_year == 4 || (weekday_of_new_year == 3 && is_leap(year)) ? 53 : 52;
    };
    const int new_year_weekday = ((weekday_ - year_day_) % 7 + 7) % 7;
    if (week < 1) {
      iso_year = now_.year - 1;
      const int before = ((new_year_weekday - (is_leap(iso_year) ? 366 : 365)) % 7 + 7) % 7;
      return weeks_of(iso_year, before);
    }
    if (week > weeks_of(now_.year, new_year_weekday)) {
      ++iso_year;
      return 1;
    }
    return week;
  }

  std::string sub(std::string_view format) const { return Formatter(now_).run(format); }

  bool put(std::string& out, char directive) {
    numeric_ = false;
    const auto hour12 = [&] { return now_.hour % 12 == 0 ? 12 : now_.hour % 12; };
    const std::string day = kDays[static_cast<std::size_t>(weekday_)];
    const std::string month = kMonths[static_cast<std::size_t>(now_.month - 1)];
    int iso_year = 0;
    switch (directive) {
      case 'a':
        out += day.substr(0, 3);
        break;
      case 'A':
        out += day;
        break;
      case 'b':
      case 'h':
        out += month.substr(0, 3);
        break;
      case 'B':
        out += month;
        break;
      case 'c':
        out += sub("%a %b %e %H:%M:%S %Y");
        break;
      case 'C':
        number(out, now_.year / 100, 2);
        break;
      case 'd':
        number(out, now_.day, 2);
        break;
      case 'D':
      case 'x':
        out += sub("%m/%d/%y");
        break;
      case 'e':
        number(out, now_.day, 2, ' ');
        break;
      case 'f':
        out += fmt::format("{:06}", now_.microsecond);
        break;
      case 'F':
        out += sub("%Y-%m-%d");
        break;
      case 'g':
        iso_week(iso_year), number(out, iso_year % 100, 2);
        break;
      case 'G':
        iso_week(iso_year), number(out, iso_year, 1);
        break;
      case 'H':
        number(out, now_.hour, 2);
        break;
      case 'I':
        number(out, hour12(), 2);
        break;
      case 'j':
        number(out, year_day_ + 1, 3);
        break;
      case 'k':
        number(out, now_.hour, 2, ' ');
        break;
      case 'l':
        number(out, hour12(), 2, ' ');
        break;
      case 'm':
        number(out, now_.month, 2);
        break;
      case 'M':
        number(out, now_.minute, 2);
        break;
      case 'n':
        out += '\n';
        break;
      case 'p':
        out += flag_ == '#' ? (now_.hour < 12 ? "am" : "pm") : (now_.hour < 12 ? "AM" : "PM");
        break;
      case 'P':
        out += now_.hour < 12 ? "am" : "pm";
        break;
      case 'r':
        out += sub("%I:%M:%S %p");
        break;
      case 'R':
        out += sub("%H:%M");
        break;
      case 's':
        number(out, seconds_, 1);
        break;
      case 'S':
        number(out, now_.second, 2);
        break;
      case 't':
        out += '\t';
        break;
      case 'T':
      case 'X':
        out += sub("%H:%M:%S");
        break;
      case 'u':
        number(out, weekday_ == 0 ? 7 : weekday_, 1);
        break;
      case 'U':
        number(out, (year_day_ + 7 - weekday_) / 7, 2);
        break;
      case 'V':
        number(out, iso_week(iso_year), 2);
        break;
      case 'w':
        number(out, weekday_, 1);
        break;
      case 'W':
        number(out, (year_day_ + 7 - (weekday_ + 6) % 7) / 7, 2);
        break;
      case 'y':
        number(out, now_.year % 100, 2);
        break;
      case 'Y':
        number(out, now_.year, 1);
        break;
      case 'z':
      case 'Z':
        break;  // a naive time has no zone
      case '%':
        out += '%';
        break;
      default:
        return false;
    }
    return true;
  }

  ClockReading now_;
  int weekday_ = 0;   // Sunday is 0
  int year_day_ = 0;  // January 1st is 0
  std::int64_t seconds_ = 0;
  char flag_ = 0;
  bool numeric_ = false;
};

}  // namespace

Clock local_clock() {
  return [] {
    const auto now = std::chrono::system_clock::now();
    const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
    std::tm parts{};
    localtime_r(&seconds, &parts);
    const auto micro =
        std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count() % 1'000'000;
    return ClockReading{parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,          parts.tm_hour,
                        parts.tm_min,         parts.tm_sec,     static_cast<int>(micro)};
  };
}

Clock fixed_clock(ClockReading reading) {
  return [reading] { return reading; };
}

ClockReading parse_clock(std::string_view text) {
  const auto refuse = [&] {
    throw Error(fmt::format("'{}' is no time; expected YYYY-MM-DD or YYYY-MM-DDTHH:MM:SS", text), ErrorKind::kUsage);
  };
  ClockReading out;
  std::size_t at = 0;
  const auto read = [&](int& number, std::size_t digits) {
    number = 0;
    for (std::size_t i = 0; i < digits; ++i, ++at) {
      if (at >= text.size() || text[at] < '0' || text[at] > '9') refuse();
      number = number * 10 + (text[at] - '0');
    }
  };
  const auto skip = [&](std::string_view choices) {
    if (at >= text.size() || choices.find(text[at]) == std::string_view::npos) refuse();
    ++at;
  };
  read(out.year, 4), skip("-"), read(out.month, 2), skip("-"), read(out.day, 2);
  if (at < text.size()) {
    skip("T "), read(out.hour, 2), skip(":"), read(out.minute, 2);
    if (at < text.size()) skip(":"), read(out.second, 2);
  }
  const bool fits = at == text.size() && out.year >= 1 && out.month >= 1 && out.month <= 12 && out.day >= 1 &&
                    out.day <= days_in_month(out.year, out.month) && out.hour < 24 && out.minute < 60 &&
                    out.second < 60;
  if (!fits) refuse();
  return out;
}

std::string format_time(const ClockReading& reading, std::string_view format) { return Formatter(reading).run(format); }

}  // namespace hk::tokenizer::jinja
