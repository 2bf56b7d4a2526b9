// Profiles as a trace file (see trace_file.h).
#include "cli/profile/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "cli/streams.h"
#include "engine/container/atomic_file.h"

namespace hk::cli {
namespace {

using Clock = engine::Profile::Clock;

double microseconds(Clock::duration time) { return std::chrono::duration<double, std::micro>(time).count(); }

/// Text that is written in pieces, so that a long trace needs no long string.
class TraceWriter {
 public:
  explicit TraceWriter(const std::string& path) : file_(path) {}

  void add(std::string_view text) {
    buffer_ += text;
    constexpr std::size_t kPiece = std::size_t{1} << 20;
    if (buffer_.size() >= kPiece) flush();
  }
  void event(const std::string& text) {
    add(first_ ? "\n" : ",\n");
    add(text);
    first_ = false;
  }
  void finish() {
    flush();
    file_.sync();
    file_.commit();
  }

 private:
  void flush() {
    file_.write(at_, std::as_bytes(std::span(buffer_)));
    at_ += buffer_.size();
    buffer_.clear();
  }
  engine::AtomicFile file_;
  std::string buffer_;
  std::uint64_t at_ = 0;
  bool first_ = true;
};

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Name and what is written behind it; begin and end.
struct Entry {
  Clock::time_point begin, end;
  const engine::Profile::Span* span;
  std::uint32_t stage;
};

void write_part(TraceWriter& out, const ProfiledPart& part, std::size_t number, Clock::time_point start) {
  out.event(fmt::format(R"({{"ph":"M","pid":{},"tid":1,"name":"process_name","args":{{"name":{}}}}})", number,
                        quoted(part.name)));
  std::vector<Entry> entries;
  entries.reserve(part.profile.events().size() + part.profile.spans().size());
  for (const auto& span : part.profile.spans()) entries.push_back({span.begin, span.end, &span, 0});
  for (const auto& event : part.profile.events()) entries.push_back({event.begin, event.end, nullptr, event.stage});
  // What holds others comes first.
  std::ranges::sort(
      entries, [](const Entry& a, const Entry& b) { return a.begin != b.begin ? a.begin < b.begin : a.end > b.end; });
  std::vector<std::string> names;
  for (const auto& stage : part.profile.stages())
    names.push_back(quoted(stage.detail.empty() ? stage.name : fmt::format("{} ({})", stage.name, stage.detail)));
  for (const Entry& entry : entries) {
    const std::string place = fmt::format(R"("ph":"X","pid":{},"tid":1,"ts":{:.3f},"dur":{:.3f})", number,
                                          microseconds(entry.begin - start), microseconds(entry.end - entry.begin));
    if (entry.span == nullptr) {
      out.event(fmt::format(R"({{{},"cat":"stage","name":{}}})", place, names[entry.stage]));
    } else {
      out.event(fmt::format(R"({{{},"cat":"span","name":{},"args":{{"number":{}}}}})", place,
                            quoted(std::string(entry.span->name)), entry.span->number));
    }
  }
  if (const auto dropped = part.profile.events_dropped(); dropped != 0)
    write_note(fmt::format("hk-run: note: {}: the last {} events are not in the trace, which would be too long",
                           part.name, dropped));
}

}  // namespace

void write_trace(const std::string& path, const ProfiledParts& parts) {
  TraceWriter out(path);
  out.add(R"({"displayTimeUnit":"ms","traceEvents":[)");
  for (std::size_t i = 0; i < parts.size(); ++i) write_part(out, parts[i], i + 1, parts[0].profile.start());
  out.add("\n]}\n");
  out.finish();
}

}  // namespace hk::cli
