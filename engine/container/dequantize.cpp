// Any storable tensor to row-major f32: checks, then the decoder that its payload needs.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "engine/container/metadata_blob.h"
#include "engine/container/model_reader.h"
#include "engine/container/payload.h"
#include "engine/container/payload_decode.h"

namespace hk::engine {
namespace {

void add_residual(const TensorView& tensor, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); ++i) out[i] += load_little_endian<float>(tensor.residual.data() + 4 * i);
}

}  // namespace

void dequantize_to_f32(const ModelReader& reader, const TensorView& tensor, bool with_residual, std::span<float> out) {
  if (!tensor.problem.empty()) throw Error(tensor.problem);
  const auto refuse = [&](const std::string& why) {
    throw Error(fmt::format("{}: tensor {:?}: {}", reader.path(), tensor.name, why));
  };
  // A view from a reader passes; one that somebody put together must too before a byte of it is read.
  const auto verdict = check_sizes(tensor, {tensor.data.size(), tensor.scales.size(), tensor.residual.size()});
  if (verdict.kind != PayloadVerdict::Kind::kFine) refuse(verdict.why);
  if (const auto problem = check_contents(tensor); !problem.empty()) refuse(problem);
  const auto elements = tensor.elements();
  if (out.size() < elements) refuse(fmt::format("{} values do not fit the space for {}", elements, out.size()));
  out = out.first(elements);
  if (out.empty()) return;
  switch (payload_kind(tensor, !tensor.scales.empty())) {
    case PayloadKind::kBlocks:
      kernels::find_format(tensor.type)->decode(tensor.data.data(), out.data(), elements);
      break;
    case PayloadKind::kTiled:
      decode_tiled(tensor, out);
      break;
    case PayloadKind::kDual:
      decode_dual(tensor, out);
      break;
    case PayloadKind::kSplitBlocks:
      decode_split_blocks(tensor, out);
      break;
    case PayloadKind::kBitmask:
      decode_bitmask(tensor, out);
      break;
    case PayloadKind::kStructured2_4:
      decode_2_4(tensor, out);
      break;
    case PayloadKind::kBlockSparse:
      decode_block_sparse(tensor, out);
      break;
    case PayloadKind::kZeros:
      std::fill(out.begin(), out.end(), 0.0f);
      break;
    case PayloadKind::kNone:
      refuse("its payload cannot be decoded");
      break;
  }
  if (with_residual && !tensor.residual.empty()) add_residual(tensor, out);
}

}  // namespace hk::engine
