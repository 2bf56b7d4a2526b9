// libFuzzer target: arbitrary bytes as a model file (.hk, .gguf or the index of a set).
//
// What must hold: no crash and no reading outside of the file, whatever is asked of a file that opened: metadata by
// every getter, tensors, their values, the appendix, the vocabulary, all checks of `verify`.
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "engine/container/appendix.h"
#include "engine/container/hk_reader.h"
#include "engine/container/model_reader.h"
#include "engine/container/validate.h"
#include "engine/container/vocabulary.h"
#include "tests/fuzz/memory_file.h"

namespace {

using hk::fuzz::require;
namespace engine = hk::engine;

// Larger tensors only repeat what small ones do.
constexpr std::uint64_t kMostValues = 1 << 16;

/// Errors are answers here; anything else that is thrown is a finding.
template <typename Ask>
void ask(Ask&& question) {
  try {
    question();
  } catch (const hk::Error&) {
  }
}

std::uint8_t touched(std::span<const std::byte> bytes) {
  std::uint8_t sum = 0;
  for (const std::byte b : bytes) sum = static_cast<std::uint8_t>(sum ^ static_cast<std::uint8_t>(b));
  return sum;
}

void read_metadata(const engine::Metadata& metadata) {
  for (const auto& entry : metadata.entries()) {
    ask([&] { require(!metadata.to_text(entry).empty() || entry.value.empty()); });
    ask([&] { metadata.string(entry.key); });
    ask([&] { metadata.integer(entry.key); });
    ask([&] { metadata.number(entry.key); });
    ask([&] { metadata.boolean(entry.key); });
    ask([&] { metadata.integers(entry.key); });
    ask([&] { metadata.floats(entry.key); });
    ask([&] {
      const auto list = metadata.strings(entry.key);
      for (std::size_t i = 0; list && i < list->size(); ++i) touched(std::as_bytes(std::span((*list)[i])));
    });
    ask([&] { metadata.array_size(entry.key); });
    touched(std::as_bytes(metadata.floats_in_place(entry.key)));
    touched(std::as_bytes(metadata.integers_in_place(entry.key)));
  }
}

void read_tensors(const engine::ModelReader& reader) {
  for (const auto& tensor : reader.tensors()) {
    require(reader.find(tensor.name) != nullptr);
    touched(tensor.data);
    touched(tensor.scales);
    touched(tensor.residual);
    if (tensor.elements() > kMostValues) continue;
    std::vector<float> values(tensor.elements());
    for (const bool residual : {false, true}) ask([&] { engine::dequantize_to_f32(reader, tensor, residual, values); });
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const hk::fuzz::MemoryFile file;
  file.fill(data, size);
  ask([&] {
    const auto reader = engine::open_model(file.path());
    read_metadata(reader->metadata());
    read_tensors(*reader);
    engine::validate(*reader);
    if (const auto* hk = dynamic_cast<const engine::HkReader*>(reader.get()))
      for (const auto& part : hk->files()) {
        const auto appendix = engine::read_appendix(part.bytes(), part.header.appendix_offset);
        engine::check_lineage(appendix);
        engine::appendix_problems(appendix);
      }
    const auto tokens = engine::make_tokenizer(*reader);
    const auto ids = tokens->encode("A text, 1 2 3.\n  é", {true, true});
    tokens->decode(ids, false);
  });
  return 0;
}
