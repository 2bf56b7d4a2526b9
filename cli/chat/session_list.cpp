// Lists sessions.
#include "cli/chat/session_list.h"

#include <fmt/format.h>

#include <chrono>
#include <string>

#include "cli/chat/session_store.h"
#include "cli/streams.h"
#include "cli/text.h"

namespace hk::cli {
namespace {

std::string age_text(std::filesystem::file_time_type changed) {
  using namespace std::chrono;
  const auto age = std::filesystem::file_time_type::clock::now() - changed;
  if (age < minutes(1)) return "just now";
  if (age < hours(1)) return fmt::format("{} min ago", duration_cast<minutes>(age).count());
  if (age < days(1)) return fmt::format("{} h ago", duration_cast<hours>(age).count());
  return fmt::format("{} days ago", duration_cast<days>(age).count());
}

}  // namespace

void write_session_list() {
  const auto list = list_sessions();
  if (list.empty()) write_note("No session is kept; hk-run chat FILE --session NAME begins one.");
  for (const auto& session : list) {
    if (!session.problem.empty()) {
      write_answer(fmt::format("{}\tcannot be read: {}\n", session.name, printable(session.problem)));
      continue;
    }
    write_answer(fmt::format("{}\t{} turns\t{}{}\t{}\t{}\t{}\n", session.name, session.turns, age_text(session.changed),
                             session.in_use ? ", in use" : "", bytes_text(session.bytes), printable(session.model),
                             printable(session.beginning)));
  }
}

}  // namespace hk::cli
