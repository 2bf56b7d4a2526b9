// Commands that change or show how answers are made.
#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/error.h"
#include "cli/chat/command_list.h"
#include "cli/sampling_fields.h"
#include "cli/streams.h"
#include "cli/text.h"

namespace hk::cli {
namespace {

constexpr std::string_view kOwnSettings[] = {"max_tokens", "overflow", "think_budget"};

/// A number of tokens, or -1 for none.
std::optional<std::size_t> limit_from(std::string_view name, std::string_view value) {
  long long number = 0;
  const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (problem != std::errc{} || end != value.data() + value.size() || number < -1)
    throw Error(
        fmt::format("/set {}: '{}' is no number of tokens; expected -1 (no limit) or more", name, printable(value)));
  return number < 0 ? std::nullopt : std::optional(static_cast<std::size_t>(number));
}

std::string limit_text(const std::optional<std::size_t>& limit) {
  return limit ? std::to_string(*limit) : std::string("no limit");
}

std::string_view overflow_name(Overflow overflow) {
  return overflow == Overflow::kStop ? "stop" : overflow == Overflow::kError ? "error" : "drop-oldest";
}

Overflow overflow_from(std::string_view name) {
  for (const auto overflow : {Overflow::kStop, Overflow::kError, Overflow::kDropOldest})
    if (overflow_name(overflow) == name) return overflow;
  throw Error(fmt::format("/set overflow: '{}' is not known; expected stop, drop-oldest or error", printable(name)));
}

Json value_of(std::string_view text) {
  try {
    return parse_json_line(text);
  } catch (const Error&) {
    return Json(std::string(text));  // names need no quotes
  }
}

void show_line(std::string_view name, std::string_view value) { write_note(fmt::format("  {:22} {}", name, value)); }

std::string think_text(Repl& repl) {
  const auto& options = repl.conversation().options();
  if (!repl.conversation().knows_thinking()) return "the model is not known to think";
  std::string text = !options.think ? "as the template does" : *options.think ? "on" : "off";
  if (!repl.conversation().can_switch_thinking()) text = "no switch in the template";
  const auto view = repl.options().view.reasoning;
  return text + (view == ReasoningView::kShown     ? ", shown"
                 : view == ReasoningView::kCounted ? ", collapsed"
                                                   : ", hidden");
}

}  // namespace

std::vector<std::string_view> setting_names() {
  std::vector<std::string_view> names(std::begin(kOwnSettings), std::end(kOwnSettings));
  const Json values = sampling_values({});
  for (const auto& [name, value] : values.items()) names.push_back(sampling_field_name(name));
  names.push_back("seed");
  return names;
}

CommandOutcome set_setting(Repl& repl, std::string_view rest) {
  if (rest.empty()) return show_settings(repl, rest);
  const auto blank = rest.find_first_of(" \t=");
  const std::string name(rest.substr(0, blank));
  if (blank == std::string_view::npos)
    throw Error(fmt::format("/set {}: a value is missing, as in /set temperature 0.5", printable(name)));
  std::string_view value = rest.substr(blank);
  value.remove_prefix(std::min(value.find_first_not_of(" \t="), value.size()));
  Conversation& chat = repl.conversation();
  if (name == "max_tokens") {
    repl.options().generate.max_tokens = limit_from(name, value);
  } else if (name == "think_budget") {
    chat.set_think_budget(limit_from(name, value));
  } else if (name == "overflow") {
    chat.set_overflow(overflow_from(value));
  } else {
    auto sampling = chat.options().sampling;
    if (!set_sampling_field(sampling, name, value_of(value)))
      throw Error(fmt::format("/set: there is no setting '{}'; there are {}", printable(name),
                              fmt::join(setting_names(), ", ")));
    chat.set_sampling(std::move(sampling));
  }
  return CommandOutcome::kDone;
}

CommandOutcome show_settings(Repl& repl, std::string_view) {
  Conversation& chat = repl.conversation();
  const auto& running = chat.running();
  const auto& info = running.model->info();
  const auto& reader = *running.reader;
  show_line("model", fmt::format("{} ({}), {}", printable(info.name), printable(info.architecture), reader.path()));
  show_line("system", chat.state().branch().system.empty() ? "none" : printable(chat.state().branch().system));
  show_line("branch", printable(chat.state().branch().name));
  if (repl.session() != nullptr) show_line("session", repl.session()->name());
  show_line("think", think_text(repl));
  show_line("think_budget", limit_text(chat.options().think_budget));
  show_line("max_tokens", limit_text(repl.options().generate.max_tokens));
  show_line("overflow", overflow_name(chat.options().overflow));
  const auto values = sampling_values(chat.options().sampling);
  const SamplingOptions* typed = repl.options().sampling;
  const auto started = typed == nullptr ? values : sampling_values(typed->settings(reader));
  for (const auto& [name, value] : values.items()) {
    const char* origin = "";
    if (value != started.at(name)) {
      origin = "  (set here)";
    } else if (typed != nullptr && typed->origin(name, reader) == SettingOrigin::kFile) {
      origin = "  (from the model file)";
    } else if (typed != nullptr && typed->origin(name, reader) == SettingOrigin::kGiven) {
      origin = "  (given)";
    }
    show_line(name, json_text(value) + origin);
  }
  show_line("seed", std::to_string(chat.sampler().seed()));
  return CommandOutcome::kDone;
}

CommandOutcome think_mode(Repl& repl, std::string_view rest) {
  Conversation& chat = repl.conversation();
  if (rest.empty()) {
    write_note(fmt::format("think: {}", think_text(repl)));
    return CommandOutcome::kDone;
  }
  auto& view = repl.options().view.reasoning;
  if (rest == "on" || rest == "off") {
    view = ReasoningView::kShown;
  } else if (rest == "collapse") {
    view = ReasoningView::kCounted;
  } else if (rest == "hide") {
    view = ReasoningView::kHidden;
  } else {
    throw Error(fmt::format("/think: '{}' is not known; expected on, off, collapse or hide", printable(rest)));
  }
  chat.set_think(rest != "off");
  if (!chat.can_switch_thinking())
    write_note("The template has no switch for thinking; /set think_budget 0 ends it at once.");
  return CommandOutcome::kDone;
}

CommandOutcome show_statistics(Repl& repl, std::string_view) {
  Conversation& chat = repl.conversation();
  const auto& totals = chat.totals();
  if (chat.latest()) write_note(chat.statistics_line(*chat.latest()));
  const auto rate = [](std::size_t tokens, double seconds) {
    return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
  };
  write_note(
      fmt::format("in all {} answers: {} tokens read at {:.1f} tok/s, {} found in memory, {} generated at {:.1f} "
                  "tok/s",
                  totals.answers, totals.read, rate(totals.read, totals.read_seconds), totals.cached, totals.generated,
                  rate(totals.generated, totals.generate_seconds)));
  return CommandOutcome::kDone;
}

CommandOutcome show_context(Repl& repl, std::string_view) {
  write_note(repl.context_meter());
  return CommandOutcome::kDone;
}

}  // namespace hk::cli
