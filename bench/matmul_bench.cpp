// Matrix kernels against the machine's limits: every weight format, at sizes of real layers, for one activation row to
// many.
//
// A plain program and not Google Benchmark: on a machine that others use too, or whose clock changes, a speed and a
// limit taken seconds apart make no fraction. So each repetition measures the limits (engine/runtime/roofline.h) right
// before the case and forms the fraction of the two, repetitions go round all cases of a format so that a disturbance
// meets all alike, and what is reported is the median of these fractions with the lowest and the highest. That pairing
// cannot be expressed there.
//
// Counted are the bytes of the weights and rows x cols x activations multiply-accumulates. Work is cut
// as models/product does it for a token; chunks are handed out in their order. The activations are quantized before: a
// model does that once for several matrices.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "bench/report.h"
#include "bench/weight_arena.h"
#include "engine/runtime/aligned_buffer.h"
#include "engine/runtime/roofline.h"
#include "engine/runtime/thread_pool.h"
#include "engine/runtime/topology.h"
#include "kernels/activation.h"
#include "kernels/kernels.h"
#include "kernels/quant/sample_blocks.h"

namespace hk::bench {
namespace {

using engine::Cores;
using engine::Measured;
using engine::PeakKind;
using kernels::ActivationFormat;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kRowUnit = 32, kChunksAThread = 8;  // as in models/product.cpp
constexpr std::size_t kColdBytes = std::size_t{128} << 20;
constexpr std::size_t kCachesCovered = 4;
// As long as a run of a case: the first megabytes after other work are slower to come (4 ms showed two thirds of the
// rate).
constexpr std::chrono::microseconds kProbeRun{8000};

struct Options {
  std::vector<std::string> formats, levels, shapes, threads{"1", "all"};
  std::vector<std::size_t> rows{1, 2, 4, 8, 32, 128, 512};
  std::size_t repetitions = 5;
  double run_ms = 8;
  bool quick = false, cached = false;
  std::string json;
};

struct Case {
  MatrixShape shape;
  std::size_t n = 1;
  std::size_t products = 1;  ///< in one run
  std::size_t next_copy = 0;
  std::vector<double> seconds, read, peak, bf16;  ///< one of each a repetition
};

/// Prepared activation rows for each row length.
class Activations {
 public:
  Activations(const kernels::KernelTable& table, ActivationFormat format, const std::vector<MatrixShape>& shapes,
              std::size_t rows) {
    kernels::SampleRandom random(2);
    for (const MatrixShape& shape : shapes) {
      if (records_.count(shape.cols) != 0) continue;
      const std::size_t stride = kernels::activation_layout(format, shape.cols).stride;
      engine::AlignedBuffer<std::uint8_t> records(rows * stride, "activations");
      std::vector<float> x(shape.cols);
      for (std::size_t i = 0; i < rows; ++i) {
        for (float& v : x) v = random.between(-1, 1);
        table.quantize_row(format, x.data(), shape.cols, records.data() + i * stride);
      }
      records_.emplace(shape.cols, std::move(records));
    }
  }
  const std::uint8_t* of(std::size_t cols) const { return records_.at(cols).data(); }

 private:
  std::map<std::size_t, engine::AlignedBuffer<std::uint8_t>> records_;
};

/// Everything that is the same for all cases of one format, level and thread count.
class FormatBench {
 public:
  FormatBench(const kernels::KernelTable& table, const kernels::Format& format, engine::ThreadPool& pool,
              const WeightArena& arena, const std::vector<MatrixShape>& shapes, std::size_t most_rows)
      : format_(format),
        pool_(pool),
        arena_(arena),
        multiply_(table.matmul(format.type)),
        activations_(table, format.activation, shapes, most_rows) {
    std::size_t results = 0;
    for (const MatrixShape& shape : shapes) results = std::max(results, shape.rows * most_rows);
    out_ = engine::AlignedBuffer<float>(results, "results");
  }

  /// Seconds for one product, over `products` of them in a row.
  double run(Case& c) {
    const auto start = Clock::now();
    for (std::size_t i = 0; i < c.products; ++i) product(c);
    return std::chrono::duration<double>(Clock::now() - start).count() / static_cast<double>(c.products);
  }

 private:
  void product(Case& c) {
    kernels::MatmulArgs args;
    const std::uint8_t* weights = arena_.matrix(c.shape, c.next_copy++);
    args.weight_stride = arena_.row_bytes(c.shape);
    args.cols = c.shape.cols;
    args.activations = activations_.of(c.shape.cols);
    args.activation_stride = kernels::activation_layout(format_.activation, c.shape.cols).stride;
    args.n = c.n;
    args.out_stride = c.shape.rows;
    const std::size_t parts = static_cast<std::size_t>(pool_.threads()) * kChunksAThread;
    const std::size_t chunk = kernels::round_up(std::max<std::size_t>(1, c.shape.rows / parts), kRowUnit);
    pool_.run((c.shape.rows + chunk - 1) / chunk, [&](std::size_t index, int) {
      kernels::MatmulArgs part = args;
      const std::size_t first = index * chunk;
      part.weights = weights + first * args.weight_stride;
      part.rows = std::min(chunk, c.shape.rows - first);
      part.out = out_.data() + first;
      multiply_(part);
    });
  }

  const kernels::Format& format_;
  engine::ThreadPool& pool_;
  const WeightArena& arena_;
  kernels::MatmulFn multiply_;
  Activations activations_;
  engine::AlignedBuffer<float> out_;
};

PeakKind peak_of(const kernels::Format& format) {
  return format.activation == ActivationFormat::kF32 ? PeakKind::kF32Fma : PeakKind::kInt8Dot;
}

/// Median of the fractions of neighbouring runs.
Measured ratio(const std::vector<double>& above, const std::vector<double>& below) {
  std::vector<double> values;
  for (std::size_t i = 0; i < above.size() && i < below.size(); ++i) values.push_back(above[i] / below[i]);
  return engine::summarize(std::move(values));
}

/// The best run against the best limit: what is left where other programs took the core away in most runs.
double best_ratio(const std::vector<double>& above, const std::vector<double>& below) {
  return *std::max_element(above.begin(), above.end()) / *std::max_element(below.begin(), below.end());
}

struct Context {
  const kernels::KernelTable& table;
  const kernels::Format& format;
  engine::ThreadPool& pool;
};

Json result_json(const Context& context, const Case& c, std::size_t matrix_bytes) {
  const double bytes = static_cast<double>(matrix_bytes) / 1e9;
  const double macs = static_cast<double>(c.shape.rows * c.shape.cols * c.n) / 1e9;
  std::vector<double> gbs, gmacs, roofline;
  for (std::size_t i = 0; i < c.seconds.size(); ++i) {
    gbs.push_back(bytes / c.seconds[i]);
    gmacs.push_back(macs / c.seconds[i]);
    roofline.push_back(std::max(bytes / c.read[i], macs / c.peak[i]) / c.seconds[i]);
  }
  Json json = {{"kind", "matmul"},
               {"format", context.format.name},
               {"level", context.table.level},
               {"threads", context.pool.threads()},
               {"rows", c.shape.rows},
               {"cols", c.shape.cols},
               {"n", c.n},
               {"weight_bytes", matrix_bytes},
               {"seconds", to_json(engine::summarize(c.seconds))},
               {"gbs", to_json(engine::summarize(gbs))},
               {"gmacs", to_json(engine::summarize(gmacs))},
               {"read_gbs", to_json(engine::summarize(c.read))},
               {"of_read", to_json(ratio(gbs, c.read))},
               {"best_of_read", best_ratio(gbs, c.read)},
               {"peak", peak_of(context.format) == PeakKind::kF32Fma ? "f32_fma" : "int8_dot"},
               {"peak_gmacs", to_json(engine::summarize(c.peak))},
               {"of_peak", to_json(ratio(gmacs, c.peak))},
               {"best_of_peak", best_ratio(gmacs, c.peak)}};
  // bf16 weights could meet bf16 activations where the CPU has a dot of the two: say how far that is, too
  if (context.format.type == kernels::StorageType::kBF16 && !c.bf16.empty()) {
    json["of_bf16_dot"] = to_json(ratio(gmacs, c.bf16));
    json["best_of_bf16_dot"] = best_ratio(gmacs, c.bf16);
  }
  json["of_roofline"] = to_json(engine::summarize(roofline));
  return json;
}

void print_result(const Json& json) {
  const auto median = [&](const char* key) { return json[key]["median"].get<double>(); };
  const Json& limit = json["of_roofline"];
  fmt::print(
      "{:8} {:>5}x{:<5} n={:<3} {} thr {:7.2f} GB/s {:4.0f} % of read {:8.1f} GMAC/s {:4.0f} % of {}"
      " {:4.0f} % [{:.0f}..{:.0f}] of the limit\n",
      json["format"].get<std::string>(), json["rows"].get<std::size_t>(), json["cols"].get<std::size_t>(),
      json["n"].get<std::size_t>(), json["threads"].get<int>(), median("gbs"), 100 * median("of_read"), median("gmacs"),
      100 * median("of_peak"), json["peak"].get<std::string>(), 100 * median("of_roofline"),
      100 * limit["lowest"].get<double>(), 100 * limit["highest"].get<double>());
  std::fflush(stdout);
}

void bench_format(const Context& context, engine::RooflineProbe& probe, const std::vector<MatrixShape>& shapes,
                  const Options& options, WeightArena& arena, JsonLines& lines) {
  arena.fill(context.format, shapes, context.pool);
  const std::size_t most_rows = *std::max_element(options.rows.begin(), options.rows.end());
  FormatBench bench(context.table, context.format, context.pool, arena, shapes, most_rows);
  std::vector<Case> cases;
  for (const MatrixShape& shape : shapes) {
    for (const std::size_t n : options.rows) {
      Case c{shape, n, 1, 0, {}, {}, {}, {}};
      const double once = bench.run(c);  // warms up, too
      c.products = static_cast<std::size_t>(std::max(1.0, options.run_ms / 1e3 / once));
      cases.push_back(std::move(c));
    }
  }
  const bool bf16 = context.format.type == kernels::StorageType::kBF16 && probe.has(PeakKind::kBf16Dot);
  // With a pool of one thread, "all" is that thread.
  for (std::size_t repetition = 0; repetition < options.repetitions; ++repetition) {
    for (Case& c : cases) {
      c.peak.push_back(probe.run(peak_of(context.format), Cores::kAll));
      if (bf16) c.bf16.push_back(probe.run(PeakKind::kBf16Dot, Cores::kAll));
      c.read.push_back(probe.run(PeakKind::kRead, Cores::kAll));
      c.seconds.push_back(bench.run(c));
    }
  }
  for (const Case& c : cases) {
    const Json json = result_json(context, c, c.shape.rows * arena.row_bytes(c.shape));
    print_result(json);
    lines.write(json);
  }
}

std::vector<const kernels::Format*> chosen_formats(const Options& options) {
  std::vector<const kernels::Format*> formats;
  if (options.formats.empty()) {
    for (const auto& format : kernels::formats()) {
      if (format.activation != ActivationFormat::kNone) formats.push_back(&format);
    }
  }
  for (const std::string& name : options.formats) {
    const auto* format = kernels::find_format(name);
    if (format == nullptr || format->activation == ActivationFormat::kNone)
      throw Error(fmt::format("--format {}: no weight format of that name has a matrix kernel", name),
                  ErrorKind::kUsage);
    formats.push_back(format);
  }
  return formats;
}

std::vector<const kernels::KernelTable*> chosen_levels(const Options& options) {
  std::vector<const kernels::KernelTable*> levels;
  if (options.levels.empty()) levels.push_back(&kernels::kernels());
  for (const std::string& name : options.levels) {
    if (name == "all") {
      for (const auto* table : kernels::usable_levels()) levels.push_back(table);
      continue;
    }
    const char* why = "";
    const auto* table = name.empty() ? nullptr : kernels::select_level(name, &why);
    if (table == nullptr) throw Error(fmt::format("--level {}: {}", name, why), ErrorKind::kUsage);
    levels.push_back(table);
  }
  return levels;
}

std::vector<MatrixShape> chosen_shapes(const Options& options, const std::vector<const kernels::Format*>& formats) {
  // attention and feed-forward matrices of 7B-class models, and of small ones
  std::vector<MatrixShape> shapes{{4096, 4096}, {14336, 4096}, {4096, 14336}, {1024, 3072}, {2048, 8192}};
  if (options.quick) shapes.resize(1);
  if (!options.shapes.empty()) shapes.clear();
  for (const std::string& text : options.shapes) {
    MatrixShape shape;
    char end = 0;
    constexpr std::size_t kMost = std::size_t{1} << 20;
    if (std::sscanf(text.c_str(), "%zux%zu%c", &shape.rows, &shape.cols, &end) != 2 || shape.rows == 0 ||
        shape.cols == 0 || shape.rows > kMost || shape.cols > kMost)
      throw Error(fmt::format("--shape {}: expected ROWSxCOLS, like 4096x14336", text), ErrorKind::kUsage);
    shapes.push_back(shape);
  }
  for (const auto* format : formats) {
    for (const MatrixShape& shape : shapes) {
      if (shape.cols % format->block_elements != 0)
        throw Error(fmt::format("--shape {}x{}: the columns of {} come in blocks of {}", shape.rows, shape.cols,
                                format->name, format->block_elements),
                    ErrorKind::kUsage);
    }
  }
  return shapes;
}

std::vector<int> chosen_threads(const Options& options, const engine::Topology& topology) {
  std::vector<int> counts;
  for (const std::string& text : options.threads) {
    char* end = nullptr;
    const long count = text == "all" ? engine::default_threads(topology).threads : std::strtol(text.c_str(), &end, 10);
    if ((end != nullptr && *end != '\0') || count < 1 || count > 256)
      throw Error(fmt::format("--threads {}: expected a number from 1 to 256, or all", text), ErrorKind::kUsage);
    if (std::find(counts.begin(), counts.end(), count) == counts.end()) counts.push_back(static_cast<int>(count));
  }
  return counts;
}

void run(const Options& options) {
  const auto topology = engine::read_topology();
  const auto formats = chosen_formats(options);
  const auto levels = chosen_levels(options);
  const auto shapes = chosen_shapes(options, formats);
  const auto thread_counts = chosen_threads(options, topology);
  JsonLines lines(options.json);
  lines.write(machine_json(topology));
  WeightArena arena(options.cached ? 0
                                   : std::max(kColdBytes, kCachesCovered * engine::last_level_cache_bytes(topology)));
  for (const auto* table : levels) {
    for (const int threads : thread_counts) {
      engine::ThreadPool pool(threads);
      engine::RooflineProbe probe(*table, pool, {kProbeRun, 0});
      const auto roofline = probe.measure();
      fmt::print("{}\n", text(roofline));
      lines.write(roofline_json(roofline));
      for (const auto* format : formats) bench_format({*table, *format, pool}, probe, shapes, options, arena, lines);
      fmt::print("\n");
    }
  }
}

}  // namespace
}  // namespace hk::bench

int main(int argc, char** argv) {
  hk::bench::Options options;
  CLI::App app("Measures the matrix kernels against the peaks of this machine.", "matmul_bench");
  app.add_option("--format", options.formats, "Weight formats; default: all")->delimiter(',');
  app.add_option("--level", options.levels, "Kernel levels, or all; default: the one in use")->delimiter(',');
  app.add_option("--shape", options.shapes, "Matrices as ROWSxCOLS; default: five of real layers")->delimiter(',');
  auto* rows = app.add_option("--rows", options.rows, "Activation rows; default: 1,2,4,8,32,128,512")
                   ->delimiter(',')
                   ->check(CLI::Range(1, 1 << 16));
  app.add_option("--threads", options.threads, "Thread counts, or all; default: 1,all")->delimiter(',');
  app.add_option("--repetitions", options.repetitions, "Repetitions; default: 5")->check(CLI::Range(1, 1000));
  app.add_option("--run-ms", options.run_ms, "Milliseconds of one run, about; default: 8")->check(CLI::Range(0.1, 1e4));
  app.add_flag("--quick", options.quick, "One matrix, 1 and 512 activation rows");
  app.add_flag("--cached", options.cached, "The same matrix again and again: a small one then comes from a cache");
  app.add_option("--json", options.json, "Write the results to this file, one JSON object a line");
  CLI11_PARSE(app, argc, argv);
  if (options.quick && rows->empty()) options.rows = {1, 512};
  try {
    hk::bench::run(options);
  } catch (const hk::Error& error) {
    fmt::print(stderr, "matmul_bench: {}\n", error.what());
    return static_cast<int>(error.kind());
  }
  return 0;
}
