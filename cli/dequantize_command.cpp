// hk-run dequantize: one tensor decoded to little-endian f32, whatever it is stored as.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <limits>
#include <memory>
#include <string>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/output_check.h"
#include "cli/text.h"
#include "engine/container/atomic_file.h"
#include "engine/container/model_reader.h"

namespace hk::cli {
namespace {

struct Options {
  std::string file;
  std::string tensor;
  std::string output;
  bool residual = false;
};

void run(const Options& options) {
  const auto reader = engine::open_model(options.file);
  const auto* tensor = reader->find(options.tensor);
  if (tensor == nullptr)
    throw Error(fmt::format("{} has no tensor {:?} (hk-run inspect lists the {} there are)", options.file,
                            options.tensor, reader->tensors().size()));
  if (!tensor->problem.empty()) throw Error(tensor->problem);
  if (options.residual && tensor->residual.empty())
    fmt::print(stderr, "note: tensor {:?} has no residual stream\n", options.tensor);
  const auto elements = tensor->elements();
  if (elements > std::numeric_limits<std::uint64_t>::max() / sizeof(float))
    throw Error(fmt::format("{}: tensor {:?} of shape {} is too large to decode", options.file, options.tensor,
                            tensor->shape_text()));
  refuse_inputs(options.output, *reader);
  engine::AtomicFile file(options.output);
  const auto bytes = file.map(elements * sizeof(float));
  const std::span<float> values(reinterpret_cast<float*>(bytes.data()), elements);
  engine::dequantize_to_f32(*reader, *tensor, options.residual, values);
  file.sync();
  file.commit();
  fmt::print(stderr, "{}: {} {} as {} f32 values ({})\n", printable(options.output),
             kernels::storage_type_name(tensor->type), tensor->shape_text(), elements,
             bytes_text(elements * sizeof(float)));
}

}  // namespace

void add_dequantize_command(CLI::App& app) {
  auto* command = app.add_subcommand("dequantize", "Decode a tensor of any storable type to a file of f32 values");
  const auto options = std::make_shared<Options>();
  command->add_option("file", options->file, "A .hk or .gguf file")->required();
  command->add_option("tensor", options->tensor, "Name of the tensor")->required();
  command->add_option("-o,--output", options->output, "File to write: row-major little-endian f32, no header")
      ->required();
  command->add_flag("--residual", options->residual, "Add the residual stream, when there is one");
  command->callback([options] { run(*options); });
}

}  // namespace hk::cli
