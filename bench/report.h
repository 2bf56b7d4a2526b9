// How the benches write what they measured: JSON objects, one a line, and short text for the screen.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "engine/runtime/roofline.h"
#include "engine/runtime/topology.h"

namespace hk::bench {

using Json = nlohmann::ordered_json;

inline Json to_json(const engine::Measured& m) {
  return {{"median", m.median}, {"lowest", m.lowest}, {"highest", m.highest}, {"runs", m.runs}};
}
inline Json to_json(const engine::Peaks& peaks) {
  Json json = {{"int8_dot", to_json(peaks.int8_dot)}, {"f32_fma", to_json(peaks.f32_fma)}};
  json["bf16_dot"] = peaks.bf16_dot.runs == 0 ? Json(nullptr) : to_json(peaks.bf16_dot);
  json["read"] = to_json(peaks.read);
  return json;
}
inline Json machine_json(const engine::Topology& topology) {
  const auto choice = engine::default_threads(topology);
  return {{"kind", "machine"},
          {"cpu", topology.cpu_model},
          {"cores", topology.physical_cores(true, true)},
          {"default_threads", choice.threads},
          {"why", choice.why},
          {"last_level_cache", engine::last_level_cache_bytes(topology)}};
}
inline Json roofline_json(const engine::Roofline& roofline) {
  return {{"kind", "roofline"},
          {"level", roofline.level},
          {"threads", roofline.threads},
          {"buffer_bytes", roofline.buffer_bytes},
          {"last_level_cache", roofline.last_level_cache},
          {"one", to_json(roofline.one)},
          {"all", to_json(roofline.all)}};
}

/// "412.3 [398.0..415.1]"
inline std::string text(const engine::Measured& m) {
  return m.runs == 0 ? "none" : fmt::format("{:.1f} [{:.1f}..{:.1f}]", m.median, m.lowest, m.highest);
}
inline std::string text(const engine::Roofline& roofline) {
  const bool several = roofline.threads > 1;
  std::string out = fmt::format("Peaks of {}, median [lowest..highest] of {} runs, read over {} MiB:\n", roofline.level,
                                roofline.one.read.runs, roofline.buffer_bytes >> 20);
  const auto line = [&](const char* name, const engine::Measured engine::Peaks::*member, const char* unit) {
    out += fmt::format("  {:8}  1 thread {:24}", name, text(roofline.one.*member));
    if (several) out += fmt::format("  {} threads {:24}", roofline.threads, text(roofline.all.*member));
    out += fmt::format(" {}\n", unit);
  };
  line("int8 dot", &engine::Peaks::int8_dot, "GMAC/s");
  line("bf16 dot", &engine::Peaks::bf16_dot, "GMAC/s");
  line("f32 fma", &engine::Peaks::f32_fma, "GMAC/s");
  line("read", &engine::Peaks::read, "GB/s");
  return out;
}

/// A file of JSON lines; does nothing without a path.
class JsonLines {
 public:
  explicit JsonLines(const std::string& path) : path_(path) {
    if (path.empty()) return;
    file_ = std::fopen(path.c_str(), "w");
    if (file_ == nullptr) throw Error(fmt::format("cannot write {}", path), ErrorKind::kResource);
  }
  ~JsonLines() {
    if (file_ != nullptr) std::fclose(file_);
  }
  JsonLines(const JsonLines&) = delete;
  JsonLines& operator=(const JsonLines&) = delete;
  void write(const Json& json) {
    if (file_ == nullptr) return;
    fmt::print(file_, "{}\n", json.dump());
    if (std::fflush(file_) != 0) throw Error(fmt::format("cannot write {}", path_), ErrorKind::kResource);
  }

 private:
  std::string path_;
  std::FILE* file_ = nullptr;
};

}  // namespace hk::bench
