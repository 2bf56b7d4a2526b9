// Writer of .hk files: plans checked, everything placed, then pieces put where they belong.
#include "engine/container/hk_writer.h"

#include <fmt/format.h>

#include <bit>
#include <limits>
#include <unordered_map>

#include "base/error.h"
#include "base/utf8.h"
#include "engine/container/metadata_blob.h"
#include "engine/container/payload.h"

namespace hk::engine {
namespace {

constexpr std::string_view kStreamNames[] = {"data", "scales", "residual"};

std::uint64_t add(std::uint64_t a, std::uint64_t b, const std::string& path) {
  std::uint64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum) || sum > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    throw Error(fmt::format("cannot write {}: it would be larger than a file can be", path));
  return sum;
}

std::uint64_t align(std::uint64_t offset, std::uint64_t alignment, const std::string& path) {
  const std::uint64_t over = offset % alignment;
  return over == 0 ? offset : add(offset, alignment - over, path);
}

void check_plan(const TensorPlan& plan, const std::string& path) {
  const auto refuse = [&](const std::string& why) {
    throw Error(fmt::format("cannot write {}: tensor {:?}: {}", path, plan.name, why));
  };
  if (plan.name.empty()) refuse("its name is empty");
  if (plan.name.size() > kMaxNameBytes)
    refuse(fmt::format("its name has {} bytes; {} is the most", plan.name.size(), kMaxNameBytes));
  if (!is_valid_utf8(plan.name) || plan.name.find('\0') != plan.name.npos) refuse("its name is no text");
  if (plan.shape.size() > kMaxDims)
    refuse(fmt::format("it has {} dimensions; {} is the most", plan.shape.size(), kMaxDims));
  if (plan.block_size > std::numeric_limits<std::uint16_t>::max())
    refuse(fmt::format("its block size {} is more than 65535", plan.block_size));
  if (plan.type == StorageType::kSharedRef) return;
  if (!plan.shared_with.empty()) refuse("it shares a payload and yet is no shared_ref");
  TensorView view;
  view.type = plan.type;
  view.tile_layout = plan.tile_layout;
  view.sparsity = plan.sparsity;
  view.block_size = plan.block_size;
  view.ndim = static_cast<std::uint32_t>(plan.shape.size());
  std::copy(plan.shape.begin(), plan.shape.end(), view.shape);
  const auto verdict = check_sizes(view, {plan.data_size, plan.scale_size, plan.residual_size});
  if (verdict.kind == PayloadVerdict::Kind::kBroken) refuse(verdict.why);
}

}  // namespace

HkWriter::HkWriter(const std::string& path, const Options& options, const MetadataBuilder& metadata,
                   std::vector<TensorPlan> tensors)
    : path_(path), plans_(std::move(tensors)), placed_(std::make_unique<Placed[]>(plans_.size())) {
  check(options);
  header_.alignment = static_cast<std::uint16_t>(options.alignment);
  header_.split_index = static_cast<std::uint16_t>(options.split_index);
  header_.split_count = static_cast<std::uint16_t>(options.split_count);
  header_.flags = kHkLittleEndian;
  constexpr std::uint32_t kTileBytes = 128, kPageBytes = 4096;  // what the two flags speak of
  header_.flags |= options.alignment % kTileBytes == 0 ? kHkTileAligned : kHkFlexibleAlignment;
  if (options.alignment >= kPageBytes) header_.flags |= kHkPageAligned;
  if (options.split_count > 1) header_.flags |= kHkIsSharded;
  place(metadata);

  file_ = std::make_unique<AtomicFile>(path_);
  file_->reserve(size_);
  const auto toc = table();
  file_->write(0, encode_hk_header(header_));
  file_->write(header_.metadata_offset, metadata.section());
  file_->write(header_.tensor_toc_offset, toc);
}

void HkWriter::check(const Options& options) const {
  if (options.alignment == 0 || options.alignment > std::numeric_limits<std::uint16_t>::max())
    throw Error(fmt::format("cannot write {}: an alignment of {} does not fit the header; 1 to 65535 does", path_,
                            options.alignment));
  if (options.split_count == 0 || options.split_count > std::numeric_limits<std::uint16_t>::max() ||
      options.split_index >= options.split_count)
    throw Error(fmt::format("cannot write {}: shard {} of {} is not possible; up to 65535 shards, counted from 0, are",
                            path_, options.split_index, options.split_count));
  for (const auto& plan : plans_) check_plan(plan, path_);
}

void HkWriter::place(const MetadataBuilder& metadata) {
  header_.tensor_count = plans_.size();
  header_.metadata_kv_count = metadata.count();
  header_.metadata_offset = kHkHeaderBytes;
  header_.metadata_size = metadata.section().size();
  header_.tensor_toc_offset = add(header_.metadata_offset, header_.metadata_size, path_);
  header_.tensor_toc_size = 0;
  for (const auto& plan : plans_)
    header_.tensor_toc_size += 2 + plan.name.size() + 4 + 8 * plan.shape.size() + 6 * 8 + 2 + 4;
  std::uint64_t end = add(header_.tensor_toc_offset, header_.tensor_toc_size, path_);
  header_.tensor_data_offset = align(end, header_.alignment, path_);

  std::unordered_map<std::string_view, std::size_t> by_name;
  for (std::size_t i = 0; i < plans_.size(); ++i) {
    const auto& plan = plans_[i];
    if (!by_name.emplace(plan.name, i).second)
      throw Error(fmt::format("cannot write {}: two tensors are named {:?}", path_, plan.name));
    auto& parts = placed_[i].parts;
    if (plan.type == StorageType::kSharedRef) {
      const auto target = by_name.find(plan.shared_with);
      if (target == by_name.end() || target->second == i)
        throw Error(fmt::format("cannot write {}: tensor {:?} shares the payload of {:?}, which is no earlier tensor",
                                path_, plan.name, plan.shared_with));
      for (int part = 0; part < 3; ++part) {
        const auto& original = placed_[target->second].parts[part];
        parts[part].offset = original.offset;
        parts[part].size = original.size;
        parts[part].written = original.size;  // nothing left to write
      }
      continue;
    }
    const std::uint64_t sizes[3] = {plan.data_size, plan.scale_size, plan.residual_size};
    for (int part = 0; part < 3; ++part) {
      if (sizes[part] == 0) continue;
      parts[part].offset = align(end, header_.alignment, path_);
      parts[part].size = sizes[part];
      end = add(parts[part].offset, sizes[part], path_);
      payload_size_ += sizes[part];
    }
  }
  size_ = end;
}

std::vector<std::byte> HkWriter::table() const {
  std::vector<std::byte> toc;
  toc.reserve(header_.tensor_toc_size);
  for (std::size_t i = 0; i < plans_.size(); ++i) {
    const auto& plan = plans_[i];
    const auto& [data, scales, residual] = placed_[i].parts;
    const auto name = std::as_bytes(std::span(plan.name));
    append_little_endian(toc, static_cast<std::uint16_t>(name.size()));
    toc.insert(toc.end(), name.begin(), name.end());
    append_little_endian(toc, static_cast<std::uint8_t>(plan.type));
    append_little_endian(toc, static_cast<std::uint8_t>(plan.tile_layout));
    append_little_endian(toc, static_cast<std::uint8_t>(plan.sparsity));
    append_little_endian(toc, static_cast<std::uint8_t>(plan.shape.size()));
    for (const auto dimension : plan.shape) append_little_endian(toc, dimension);
    for (const Part* part : {&data, &residual, &scales}) {
      append_little_endian(toc, part->offset);
      append_little_endian(toc, part->size);
    }
    append_little_endian(toc, static_cast<std::uint16_t>(plan.block_size));
    append_little_endian(toc, std::bit_cast<std::uint32_t>(plan.sparsity_ratio));
  }
  return toc;
}

void HkWriter::write(std::size_t tensor, Stream stream, std::uint64_t offset, std::span<const std::byte> bytes) {
  auto& part = placed_[tensor].parts[static_cast<int>(stream)];
  if (plans_[tensor].type == StorageType::kSharedRef || offset > part.size || bytes.size() > part.size - offset)
    throw Error(fmt::format("cannot write {}: bytes {} to {} of the {} of tensor {:?} do not exist; the stream has {}",
                            path_, offset, offset + bytes.size(), kStreamNames[static_cast<int>(stream)],
                            plans_[tensor].name, part.size));
  file_->write(part.offset + offset, bytes);
  part.written.fetch_add(bytes.size(), std::memory_order_relaxed);
}

void HkWriter::sync() {
  for (std::size_t i = 0; i < plans_.size(); ++i)
    for (int stream = 0; stream < 3; ++stream) {
      const auto& part = placed_[i].parts[stream];
      if (part.written != part.size)
        throw Error(fmt::format("cannot complete {}: {} of {} bytes of the {} of tensor {:?} were written", path_,
                                part.written.load(), part.size, kStreamNames[stream], plans_[i].name));
    }
  file_->sync();
}

void HkWriter::commit() { file_->commit(); }

void HkWriter::finish() {
  sync();
  commit();
}

}  // namespace hk::engine
