// One GGUF file: header, then metadata, then the tensor table, then aligned payloads.
#include "engine/container/gguf_file.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "base/utf8.h"
#include "engine/container/gguf_cursor.h"
#include "engine/container/gguf_metadata.h"

namespace hk::engine {
namespace {

constexpr std::uint64_t kDefaultAlignment = 32;           // where general.alignment is absent
constexpr std::uint64_t kSmallestTensor = 8 + 4 + 4 + 8;  // name length, dimension count, type, offset

constexpr std::uint64_t kUsualTensors = 4096;

std::uint32_t read_version(GgufCursor& cursor) {
  constexpr std::string_view kMagic = "GGUF";
  const auto& file = cursor.file();
  if (cursor.left() < kMagic.size())
    throw Error(fmt::format("{} is not a GGUF file: it is {} bytes long", file, cursor.left()));
  const auto magic = cursor.take(kMagic.size(), "the magic");
  if (std::memcmp(magic.data(), kMagic.data(), kMagic.size()) != 0)
    throw Error(fmt::format("{} is not a GGUF file: it starts with {:02x} {:02x} {:02x} {:02x}, not with \"GGUF\"",
                            file, std::to_integer<int>(magic[0]), std::to_integer<int>(magic[1]),
                            std::to_integer<int>(magic[2]), std::to_integer<int>(magic[3])));
  const auto version = cursor.number<std::uint32_t>("the version");
  // A version is small: bytes only in the upper half mean that the other byte order wrote it.
  if (version != 0 && (version & 0xFFFF) == 0)
    throw Error(fmt::format("{} is a big-endian GGUF file; only little-endian files can be read", file));
  if (version == 1)
    throw Error(fmt::format(
        "{} is a GGUF file of version 1, an early layout that is no longer read; versions 2 and 3 are", file));
  if (version != 2 && version != 3)
    throw Error(fmt::format("{} is a GGUF file of version {}; versions 2 and 3 can be read", file, version));
  return version;
}

std::uint64_t read_alignment(const Metadata& metadata, const std::string& file) {
  const auto* entry = metadata.find("general.alignment");
  if (entry == nullptr) return kDefaultAlignment;
  const auto value = metadata.integer("general.alignment");
  if (!value || *value <= 0 || !std::has_single_bit(static_cast<std::uint64_t>(*value)))
    throw Error(fmt::format("{}: general.alignment is {}; it must be a power of two", file, value.value_or(0)));
  return static_cast<std::uint64_t>(*value);
}

/// Why a tensor type cannot be read, as the end of a sentence. Type numbers are GGUF's; forks give their own numbers
/// meanings that nothing in the file tells apart, so an unknown one stays a number.
std::string refusal(std::uint32_t type) {
  switch (type) {
    case 4:
    case 5:
    case 31:
    case 32:
    case 33:
    case 36:
    case 37:
    case 38:
      return fmt::format("has the retired GGUF type {}, which is not supported", type);
    default:
      return fmt::format("has the unknown GGUF type {}, which is not supported", type);
  }
}

/// Entry of the tensor table whose payload offset is still relative to the data section.
struct PendingTensor {
  TensorView view;
  std::uint64_t offset;
  std::uint64_t size;
};

PendingTensor read_tensor(GgufCursor& cursor, std::uint64_t number) {
  const auto& file = cursor.file();
  PendingTensor tensor;
  auto& view = tensor.view;
  const std::string what = fmt::format("entry {} of the tensor table", number);
  view.name = cursor.string(what);
  if (view.name.empty()) throw Error(fmt::format("{}: {} has no name", file, what));
  if (view.name.size() > kMaxNameBytes)
    throw Error(
        fmt::format("{}: {} has a name of {} bytes; {} is the most", file, what, view.name.size(), kMaxNameBytes));
  if (!is_valid_utf8(view.name) || view.name.find('\0') != view.name.npos)
    throw Error(fmt::format("{}: {} has a name that is not text (invalid UTF-8 or a NUL byte)", file, what));

  const auto ndim = cursor.number<std::uint32_t>(what);
  if (ndim > kMaxDims)
    throw Error(fmt::format("{}: tensor '{}' has {} dimensions; {} is the most", file, view.name, ndim, kMaxDims));
  view.ndim = std::max<std::uint32_t>(ndim, 1);  // no dimensions: one value
  view.shape[0] = 1;
  for (std::uint32_t i = 0; i < ndim; ++i) view.shape[ndim - 1 - i] = cursor.number<std::uint64_t>(what);

  const auto type = cursor.number<std::uint32_t>(what);
  tensor.offset = cursor.number<std::uint64_t>(what);
  const auto* format = kernels::find_gguf_format(type);
  if (format == nullptr) throw Error(fmt::format("{}: tensor '{}' {}", file, view.name, refusal(type)));
  view.type = format->type;
  if (format->block_elements > 1) view.block_size = format->block_elements;

  std::uint64_t count = 1;
  for (std::uint32_t i = 0; i < view.ndim; ++i) {
    if (view.shape[i] == 0) throw Error(fmt::format("{}: tensor '{}' has a dimension of 0", file, view.name));
    if (__builtin_mul_overflow(count, view.shape[i], &count))
      throw Error(fmt::format("{}: tensor '{}' has more elements than 64 bits can count", file, view.name));
  }
  if (view.cols() % format->block_elements != 0)
    throw Error(fmt::format("{}: tensor '{}' has rows of {} elements; {} rows are a multiple of {}", file, view.name,
                            view.cols(), format->name, format->block_elements));
  if (__builtin_mul_overflow(count / format->block_elements, std::uint64_t{format->block_bytes}, &tensor.size))
    throw Error(fmt::format("{}: tensor '{}' has more bytes than 64 bits can count", file, view.name));
  return tensor;
}

void check_quantization_version(const Metadata& metadata, const std::vector<TensorView>& tensors,
                                const std::string& file) {
  const auto version = metadata.integer("general.quantization_version");
  if (!version || *version != 1) return;
  for (const auto& tensor : tensors)
    if (kernels::find_format(tensor.type)->block_elements > 1)
      throw Error(
          fmt::format("{}: general.quantization_version is 1, whose blocks are laid out differently; the blocks of "
                      "version 2 can be read (tensor '{}' is {})",
                      file, tensor.name, kernels::storage_type_name(tensor.type)));
}

}  // namespace

GgufFile parse_gguf(const MappedFile& mapped, std::uint32_t shard) {
  const auto& file = mapped.path();
  const auto bytes = mapped.bytes();
  GgufCursor cursor(bytes, file);
  GgufFile result;
  result.version = read_version(cursor);
  const auto tensor_count = cursor.number<std::uint64_t>("the tensor count");
  const auto pair_count = cursor.number<std::uint64_t>("the metadata count");
  result.metadata = read_gguf_metadata(cursor, pair_count);
  result.alignment = read_alignment(result.metadata, file);

  if (tensor_count > cursor.left() / kSmallestTensor)
    throw Error(fmt::format("{}: the header claims {} tensors, but only {} bytes follow the metadata", file,
                            tensor_count, cursor.left()));
  std::vector<PendingTensor> pending;
  // A lying count costs little: entries in memory are much larger than those in the file.
  pending.reserve(static_cast<std::size_t>(std::min<std::uint64_t>(tensor_count, kUsualTensors)));
  for (std::uint64_t i = 0; i < tensor_count; ++i) pending.push_back(read_tensor(cursor, i));

  std::uint64_t data_start = cursor.position();
  result.data_end = data_start;
  if (__builtin_add_overflow(data_start, result.alignment - 1, &data_start))
    throw Error(fmt::format("{}: general.alignment is {}, which no file can hold", file, result.alignment));
  data_start &= ~(result.alignment - 1);

  result.tensors.reserve(pending.size());
  for (auto& tensor : pending) {
    auto& view = tensor.view;
    if (tensor.offset % result.alignment != 0)
      throw Error(fmt::format("{}: tensor '{}' lies at data offset {}, which is no multiple of the alignment {}", file,
                              view.name, tensor.offset, result.alignment));
    std::uint64_t start, end;
    if (__builtin_add_overflow(data_start, tensor.offset, &start) || __builtin_add_overflow(start, tensor.size, &end) ||
        end > bytes.size())
      throw Error(
          fmt::format("{}: tensor '{}' needs {} bytes at data offset {} (file offset {}), past the end of the file at "
                      "{}; the file may be cut short",
                      file, view.name, tensor.size, tensor.offset, start, bytes.size()));
    view.data = bytes.subspan(static_cast<std::size_t>(start), static_cast<std::size_t>(tensor.size));
    view.file_offset = start;
    view.shard = shard;
    result.data_end = std::max(result.data_end, end);
    result.tensors.push_back(std::move(view));
  }
  check_quantization_version(result.metadata, result.tensors, file);
  return result;
}

}  // namespace hk::engine
