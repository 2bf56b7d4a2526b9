// Whole models against their matrices alone: what a prompt and a token cost beside the products.
//
// Not Google Benchmark, for the reason matmul_bench gives: a pass and its bound have to be timed in turn. For each
// number of threads, a prompt goes through the model, then the same matrices, mapped from the same file, meet as many
// prepared rows and nothing else happens: no norms, no attention, no activations. The share is the time of these
// products over the time of the pass; so is the share for generated tokens. Products are cut and handed out as the
// model does it (models/product.h). Beside this stands what the probe measured in the same round: the second share adds
// what attention takes at least, its multiply-adds at the f32 peak or its cache at the read rate.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.h"
#include "bench/report.h"
#include "engine/container/model_reader.h"
#include "engine/generate/speed_test.h"
#include "engine/runtime/profile.h"
#include "engine/runtime/roofline.h"
#include "engine/runtime/thread_pool.h"
#include "kernels/quant/sample_blocks.h"
#include "models/open.h"
#include "models/product.h"
#include "models/weights.h"

namespace hk::bench {
namespace {

using Clock = std::chrono::steady_clock;
using engine::Measured;
using models::Matrix;

struct Options {
  std::string model, json;
  std::size_t prompt = 512, generate = 16, chunk = 512, depth = 0, repetitions = 5;
  std::vector<int> threads{1, 0};
};

/// Matrices that read the same rows and are multiplied at once.
struct Group {
  std::vector<Matrix> matrices;
  bool output = false;  ///< meets the last row of a prompt only
};

/// "blk.3.attn_q.weight" is of "blk.3.qkv".
std::string group_of(std::string_view tensor) {
  std::string name(tensor.substr(0, tensor.rfind(".weight")));
  const std::size_t dot = name.rfind('.');
  const std::string layer = name.substr(0, dot + 1), part = name.substr(dot + 1);
  if (part == "attn_q" || part == "attn_k" || part == "attn_v") return layer + "qkv";
  if (part == "ffn_gate" || part == "ffn_up") return layer + "gate_up";
  return name;
}

class ModelMatrices {
 public:
  ModelMatrices(const engine::ModelReader& reader, const kernels::KernelTable& kernels)
      : weights_(reader, kernels, "any", owned_) {
    std::map<std::string, std::size_t> index;
    const bool tied = reader.find("output.weight") == nullptr;
    for (const engine::TensorView& view : reader.tensors()) {
      const std::string name(view.name);
      if (!name.ends_with(".weight") || view.ndim < 2 || (name == "token_embd.weight" && !tied)) continue;
      if (view.ndim > 2)
        throw Error(
            fmt::format("{}: the tensor '{}' has {} dimensions; this bench compares models whose tokens read all "
                        "matrices, not mixtures",
                        reader.path(), name, view.ndim));
      const auto [place, added] = index.try_emplace(group_of(name), groups_.size());
      if (added) groups_.emplace_back();
      Group& group = groups_[place->second];
      group.matrices.push_back(weights_.bare_matrix(name.substr(0, name.size() - 7), view.shape[0], view.shape[1]));
      group.output = name == "output.weight" || name == "token_embd.weight";
    }
    if (groups_.empty()) throw Error(fmt::format("{}: there is no matrix in it", reader.path()));
  }
  const std::vector<Group>& groups() const { return groups_; }
  /// Multiply-accumulates of a prompt of n.
  std::uint64_t macs(std::size_t n) const {
    std::uint64_t sum = 0;
    for (const Group& group : groups_) {
      for (const Matrix& matrix : group.matrices) sum += matrix.rows * matrix.cols * (group.output ? 1 : n);
    }
    return sum;
  }
  /// Whether the first matrix meets floats: they are all alike in what a bench makes.
  bool floats() const { return groups_[0].matrices[0].activation == kernels::ActivationFormat::kF32; }
  std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for (const Group& group : groups_) {
      for (const Matrix& matrix : group.matrices) sum += matrix.rows * matrix.row_bytes;
    }
    return sum;
  }

 private:
  std::vector<std::vector<float>> owned_;
  models::Weights weights_;
  std::vector<Group> groups_;
};

/// The products of a pass over n rows, on rows that were prepared before.
class Products {
 public:
  Products(const std::vector<Group>& groups, std::size_t n, const kernels::KernelTable& kernels,
           engine::ThreadPool& pool)
      : groups_(groups), n_(n), kernels_(kernels), products_(kernels, pool) {
    products_.reserve(std::size(outs_));
    for (const Group& group : groups) {
      for (const Matrix& matrix : group.matrices) prepare(rows_of(group), matrix);
    }
  }

  double seconds() {
    const auto start = Clock::now();
    for (const Group& group : groups_) {
      const std::size_t rows = rows_of(group);
      for (std::size_t i = 0; i < group.matrices.size(); ++i) {
        const Matrix& matrix = group.matrices[i];
        products_.add(matrix, inputs_.at({rows, matrix.cols, matrix.activation})->prepared,
                      outs_[i].shape(rows, matrix.rows));
      }
      products_.run("products");
    }
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

 private:
  struct Input {
    explicit Input(const kernels::KernelTable& kernels) : prepared(kernels) {}
    models::RowBuffer buffer;
    models::PreparedRows prepared;
  };
  std::size_t rows_of(const Group& group) const { return group.output ? 1 : n_; }
  void prepare(std::size_t rows, const Matrix& matrix) {
    auto& input = inputs_[{rows, matrix.cols, matrix.activation}];
    if (input != nullptr) return;
    input = std::make_unique<Input>(kernels_);
    const models::Rows x = input->buffer.shape(rows, matrix.cols);
    kernels::SampleRandom random(3);
    input->prepared.begin(x, {&matrix});
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t c = 0; c < x.cols; ++c) x[i][c] = random.between(-1, 1);
      input->prepared.prepare_row(i);
    }
  }

  const std::vector<Group>& groups_;
  std::size_t n_;
  const kernels::KernelTable& kernels_;
  models::Products products_;
  std::map<std::tuple<std::size_t, std::size_t, kernels::ActivationFormat>, std::unique_ptr<Input>> inputs_;
  models::RowBuffer outs_[3];
};

/// What one kind of pass took, its products alone, and attention at the machine's limits, in turn.
struct Series {
  std::vector<double> model, products, attention, peak;
  void add(double pass, double alone, double least_attention, double limit) {
    model.push_back(pass);
    products.push_back(alone);
    attention.push_back(least_attention);
    peak.push_back(limit);
  }
};

/// What attention had to do in what `run` does.
template <typename Run>
engine::StageWork attention_work(const Run& run) {
  engine::Profile profile;
  run();
  engine::StageWork work;
  for (const engine::Profile::Stage& stage : profile.stages()) {
    if (stage.name == "attention") work += stage.work;
  }
  return work;
}

void report(const Options& options, const char* what, int threads, const Series& series, double tokens, double work,
            const char* unit, JsonLines& lines) {
  std::vector<double> rate, share, both, of_peak;
  for (std::size_t i = 0; i < series.model.size(); ++i) {
    rate.push_back(tokens / series.model[i]);
    share.push_back(series.products[i] / series.model[i]);
    both.push_back((series.products[i] + series.attention[i]) / series.model[i]);
    of_peak.push_back(work / series.products[i] / series.peak[i]);
  }
  const Measured t = engine::summarize(rate), s = engine::summarize(share), b = engine::summarize(both);
  const Measured p = engine::summarize(of_peak);
  const double alone = engine::summarize(series.products).median;
  fmt::print(
      "{:9} {} thr {:8.1f} t/s; products alone {:8.1f} t/s, {:6.1f} {} = {:3.0f} % of the peak; share of the pass "
      "{:3.0f} % [{:.0f}..{:.0f}], with attention at its limit {:3.0f} % [{:.0f}..{:.0f}]\n",
      what, threads, t.median, tokens / alone, work / alone, unit, 100 * p.median, 100 * s.median, 100 * s.lowest,
      100 * s.highest, 100 * b.median, 100 * b.lowest, 100 * b.highest);
  std::fflush(stdout);
  lines.write({{"kind", "model"},
               {"model", options.model},
               {"test", what},
               {"threads", threads},
               {"depth", options.depth},
               {"tokens_a_second", to_json(t)},
               {"products_seconds", to_json(engine::summarize(series.products))},
               {"products_of_peak", to_json(p)},
               {"share", to_json(s)},
               {"share_with_attention", to_json(b)}});
}

void run(const Options& options) {
  const auto topology = engine::read_topology();
  JsonLines lines(options.json);
  lines.write(machine_json(topology));
  const std::shared_ptr<engine::ModelReader> reader = engine::open_model(options.model);
  const kernels::KernelTable& kernels = kernels::kernels();
  const ModelMatrices matrices(*reader, kernels);
  const double bytes = static_cast<double>(matrices.bytes()) / 1e9;
  const double gmacs = static_cast<double>(matrices.macs(options.prompt)) / 1e9;
  std::vector<int> counts;
  for (const int asked : options.threads) {
    const int threads = asked == 0 ? engine::default_threads(topology).threads : asked;
    if (std::ranges::find(counts, threads) == counts.end()) counts.push_back(threads);
  }
  for (const int threads : counts) {
    engine::ThreadPool pool(threads);
    engine::RooflineProbe probe(kernels, pool);
    const auto model = models::open(reader, pool, kernels);
    const engine::SpeedTest prompt{options.prompt, 0, options.depth, 1, options.chunk};  // one context for both
    const engine::SpeedTest generate{0, options.generate, options.depth, 1, options.chunk};
    engine::SpeedBed bed(*model, {std::max(prompt.positions(), generate.positions())});
    Products of_prompt(matrices.groups(), options.prompt, kernels, pool), of_token(matrices.groups(), 1, kernels, pool);
    Series prompts, tokens;
    const auto n = static_cast<double>(options.generate);
    engine::StageWork prompt_attention, token_attention;  // of the warm-up
    if (options.prompt != 0) {
      prompt_attention = attention_work([&] { bed.run(prompt, {}); });
      of_prompt.seconds();
    }
    if (options.generate != 0) {
      token_attention = attention_work([&] { bed.run(generate, {}); });
      of_token.seconds();
    }
    for (std::size_t repetition = 0; repetition < options.repetitions; ++repetition) {
      if (options.prompt != 0) {
        const double peak =
            probe.run(matrices.floats() ? engine::PeakKind::kF32Fma : engine::PeakKind::kInt8Dot, engine::Cores::kAll);
        const double f32 = probe.run(engine::PeakKind::kF32Fma, engine::Cores::kAll);
        const double pass = bed.run(prompt, {})->prompt_seconds, alone = of_prompt.seconds();
        prompts.add(pass, alone, static_cast<double>(prompt_attention.float_macs) / 1e9 / f32, peak);
      }
      if (options.generate != 0) {
        const double read = probe.run(engine::PeakKind::kRead, engine::Cores::kAll);
        const double pass = bed.run(generate, {})->generate_seconds / n;
        double alone = 0;
        for (std::size_t i = 0; i < options.generate; ++i) alone += of_token.seconds();
        tokens.add(pass, alone / n, static_cast<double>(token_attention.bytes) / 1e9 / n / read, read);
      }
    }
    if (options.prompt != 0)
      report(options, "prompt", threads, prompts, static_cast<double>(options.prompt), gmacs, "GMAC/s", lines);
    if (options.generate != 0) report(options, "generate", threads, tokens, 1, bytes, "GB/s", lines);
  }
}

}  // namespace
}  // namespace hk::bench

int main(int argc, char** argv) {
  hk::bench::Options options;
  CLI::App app("Measures a dense model's passes against its matrices alone.", "model_bench");
  app.add_option("model", options.model, "A .hk or GGUF file")->required();
  app.add_option("-p,--prompt", options.prompt, "Tokens of a prompt; default: 512; 0: none")
      ->check(CLI::Range(0, 4096));
  app.add_option("-n,--generate", options.generate, "Tokens to generate; default: 16; 0: none")
      ->check(CLI::Range(0, 4096));
  app.add_option("-d,--depth", options.depth, "Positions in the context before; default: 0")
      ->check(CLI::Range(0, 1 << 20));
  app.add_option("--chunk", options.chunk, "Tokens of a prompt in one call; default: 512")->check(CLI::Range(1, 4096));
  app.add_option("-t,--threads", options.threads, "Thread counts, 0 for the default; default: 1,0")
      ->delimiter(',')
      ->check(CLI::Range(0, 256));
  app.add_option("-r,--repetitions", options.repetitions, "Repetitions; default: 5")->check(CLI::Range(1, 1000));
  app.add_option("--json", options.json, "Write the results to this file, one JSON object a line");
  CLI11_PARSE(app, argc, argv);
  try {
    hk::bench::run(options);
  } catch (const hk::Error& error) {
    fmt::print(stderr, "model_bench: {}\n", error.what());
    return static_cast<int>(error.kind());
  }
  return 0;
}
