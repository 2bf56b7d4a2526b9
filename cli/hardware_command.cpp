// hk-run hardware: what this machine offers and what the engine makes of it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/model_options.h"
#include "cli/text.h"
#include "engine/runtime/memory.h"
#include "engine/runtime/topology.h"
#include "kernels/kernels.h"
#include "kernels/self_check.h"

namespace hk::cli {
namespace {

using Json = nlohmann::ordered_json;

/// Instruction sets that some kernel level asks for, and whether this CPU has them.
std::vector<std::pair<std::string, bool>> cpu_features() {
  std::vector<std::pair<std::string, bool>> features;
#if defined(__x86_64__)
  // The compiler's own detection also asks whether the system saves the wide registers.
  __builtin_cpu_init();
#define HK_FEATURE(name) features.emplace_back(name, __builtin_cpu_supports(name) != 0)
  HK_FEATURE("sse4.2");
  HK_FEATURE("avx");
  HK_FEATURE("avx2");
  HK_FEATURE("fma");
  HK_FEATURE("avx512f");
  HK_FEATURE("avx512bw");
  HK_FEATURE("avx512dq");
  HK_FEATURE("avx512vl");
  HK_FEATURE("avx512vnni");
  HK_FEATURE("avx512bf16");
#undef HK_FEATURE
#endif
  return features;
}

struct Machine {
  engine::Topology topology = engine::read_topology();
  engine::MachineMemory memory = engine::machine_memory();
  engine::ThreadChoice threads = engine::default_threads(topology);
  std::string level{chosen_kernels().level};

  std::vector<std::string> usable_levels() const {
    std::vector<std::string> names;
    for (const auto* table : kernels::usable_levels()) names.emplace_back(table->level);
    return names;
  }
  std::vector<std::string> compiled_levels() const {
    const auto names = kernels::compiled_levels();
    return {names.begin(), names.end()};
  }
};

Json optional_json(const std::optional<std::uint64_t>& value) { return value ? Json(*value) : Json(nullptr); }

Json machine_json(const Machine& machine) {
  Json json;
  json["cpu"] = machine.topology.cpu_model;
  for (const auto& [name, present] : cpu_features()) json["features"][name] = present;
  json["caches"] = Json::array();
  for (const auto& cache : machine.topology.caches)
    json["caches"].push_back(
        {{"level", cache.level}, {"type", cache.type}, {"bytes", cache.bytes}, {"instances", cache.instances}});
  json["cpus"] = {{"online", machine.topology.cpus.size()},
                  {"allowed", machine.topology.allowed_cpus()},
                  {"physical_cores", machine.topology.physical_cores(false, false)},
                  {"allowed_physical_cores", machine.topology.physical_cores(true, false)},
                  {"allowed_fast_cores", machine.topology.physical_cores(true, true)}};
  json["cpu_quota"] = machine.topology.cpu_quota ? Json(*machine.topology.cpu_quota) : Json(nullptr);
  if (machine.topology.cpu_quota) json["cpu_quota_source"] = machine.topology.cpu_quota_source;
  json["memory"] = {{"total", optional_json(machine.memory.total)},
                    {"available", optional_json(machine.memory.available)},
                    {"cgroup_limit", optional_json(machine.memory.cgroup_limit)},
                    {"cgroup_used", optional_json(machine.memory.cgroup_used)}};
  json["threads"] = {{"default", machine.threads.threads}, {"why", machine.threads.why}};
  json["kernels"] = {
      {"compiled", machine.compiled_levels()}, {"usable", machine.usable_levels()}, {"in_use", machine.level}};
  return json;
}

std::string optional_bytes(const std::optional<std::uint64_t>& value, const char* absent) {
  return value ? bytes_text(*value) : absent;
}

std::string listing(const Machine& machine) {
  const auto& topology = machine.topology;
  std::string present, missing;
  for (const auto& [name, has] : cpu_features()) (has ? present : missing) += (name + ' ');
  std::string out =
      fmt::format("CPU         {}\n", topology.cpu_model.empty() ? "unknown" : printable(topology.cpu_model));
  if (!present.empty() || !missing.empty()) {
    out += fmt::format("Features    {}\n", present.empty() ? "none of those that matter" : present);
    if (!missing.empty()) out += fmt::format("  missing   {}\n", missing);
  }
  out += fmt::format("Cores       {} physical, {} CPUs online, {} allowed by the affinity mask\n",
                     topology.physical_cores(false, false), topology.cpus.size(), topology.allowed_cpus());
  if (topology.physical_cores(true, true) < topology.physical_cores(true, false))
    out += fmt::format("  fast      {} of {} allowed cores\n", topology.physical_cores(true, true),
                       topology.physical_cores(true, false));
  for (const auto& cache : topology.caches)
    out += fmt::format("Cache L{}    {:9} {} x {}\n", cache.level,
                       cache.type == "Instruction" ? "code"
                       : cache.type == "Data"      ? "data"
                                                   : "unified",
                       cache.instances, bytes_text(cache.bytes));
  out += fmt::format("Memory      {} in all, {} available\n", optional_bytes(machine.memory.total, "unknown"),
                     optional_bytes(machine.memory.available, "unknown"));
  out += fmt::format("  limit     {}", optional_bytes(machine.memory.cgroup_limit, "none"));
  if (machine.memory.cgroup_limit)
    out += fmt::format(" for this control group, {} used", optional_bytes(machine.memory.cgroup_used, "unknown"));
  out += topology.cpu_quota
             ? fmt::format("\nCPU quota   {:.4g} CPUs ({})\n", *topology.cpu_quota, topology.cpu_quota_source)
             : std::string("\nCPU quota   none\n");
  out += fmt::format("Threads     {} by default: {}\n", machine.threads.threads, machine.threads.why);
  out += fmt::format("Kernels     {} in use\n  usable    {}\n  compiled  {}\n", machine.level,
                     fmt::join(machine.usable_levels(), " "), fmt::join(machine.compiled_levels(), " "));
  return out;
}

struct SelfCheck {
  kernels::SoundLevel result;
  double milliseconds = 0;
};

/// Checks the level in use and, while one fails, the next lower one.
SelfCheck check_levels() {
  const auto levels = kernels::usable_levels();
  const auto chosen = std::find(levels.begin(), levels.end(), &chosen_kernels());
  const auto start = std::chrono::steady_clock::now();
  SelfCheck check;
  check.result = kernels::find_sound_level(levels.subspan(static_cast<std::size_t>(chosen - levels.begin())));
  check.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return check;
}

Json self_check_json(const SelfCheck& check) {
  Json json;
  json["passes"] = check.result.table == nullptr ? Json(nullptr) : Json(check.result.table->level);
  json["faults"] = Json::array();
  for (const auto& [level, fault] : check.result.faults)
    json["faults"].push_back({{"level", level}, {"kernel", fault.kernel}, {"detail", fault.detail}});
  json["milliseconds"] = check.milliseconds;
  return json;
}

std::string self_check_listing(const SelfCheck& check) {
  std::string out;
  for (const auto& [level, fault] : check.result.faults) {
    out += fmt::format("Self check  {} FAILS: the kernel {} is wrong here ({})\n", level, fault.kernel, fault.detail);
  }
  if (check.result.table == nullptr) return out;
  out += fmt::format("Self check  {} passes ({:.0f} ms)\n", check.result.table->level, check.milliseconds);
  if (!check.result.faults.empty())
    out += fmt::format("  advice    set HK_KERNELS={} in the environment: results of {} are not to be trusted here\n",
                       check.result.table->level, check.result.faults.front().level);
  return out;
}

void run_hardware(bool json, bool self_check) {
  const Machine machine;
  const SelfCheck check = self_check ? check_levels() : SelfCheck{};
  if (json) {
    Json answer = machine_json(machine);
    if (self_check) answer["self_check"] = self_check_json(check);
    std::cout << answer.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
  } else {
    std::cout << listing(machine) << (self_check ? self_check_listing(check) : "");
  }
  if (self_check && check.result.table == nullptr)
    throw Error(fmt::format("no kernel level from {} down computes rightly on this machine", machine.level));
}

}  // namespace

void add_hardware_command(CLI::App& app) {
  auto* command =
      app.add_subcommand("hardware", "Show the machine, the kernels in use and the default number of threads");
  const auto json = std::make_shared<bool>(false);
  const auto self_check = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print JSON");
  command->add_flag(
      "--self-check", *self_check,
      "Compare every kernel in use with a plain computation; when one is wrong, try the next lower level. "
      "Exit code 1 when no level passes");
  command->callback([json, self_check] { run_hardware(*json, *self_check); });
}

}  // namespace hk::cli
