// A model file with changes: metadata keys set or removed, tensors replaced or removed, over a real reader. For
// refusals and for variants that no fixture has.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/container/model_reader.h"

namespace hk::test {

class EditedReader final : public engine::ModelReader {
 public:
  explicit EditedReader(std::shared_ptr<engine::ModelReader> base) : base_(std::move(base)) {
    for (const engine::MetadataEntry& entry : base_->metadata().entries()) entries_.push_back(entry);
    tensors_.assign(base_->tensors().begin(), base_->tensors().end());
  }

  EditedReader& remove_key(const std::string& key) {
    std::erase_if(entries_, [&](const engine::MetadataEntry& entry) { return entry.key == key; });
    return *this;
  }
  EditedReader& set_integer(const std::string& key, std::int64_t value) {
    return set(key, engine::ValueType::kInt64, &value, sizeof(value));
  }
  EditedReader& set_number(const std::string& key, double value) {
    return set(key, engine::ValueType::kFloat64, &value, sizeof(value));
  }
  EditedReader& set_text(const std::string& key, const std::string& value) {
    return set(key, engine::ValueType::kString, value.data(), value.size());
  }
  EditedReader& set_json(const std::string& key, const std::string& value) {
    return set(key, engine::ValueType::kJson, value.data(), value.size());
  }

  /// The same model under another name: keys and all.
  EditedReader& rename_architecture(const std::string& from, const std::string& to) {
    for (engine::MetadataEntry& entry : entries_) {
      if (!entry.key.starts_with(from + ".")) continue;
      const std::string renamed = to + std::string(entry.key.substr(from.size()));
      entry.key = keep(renamed.data(), renamed.size()).text;
    }
    return set_text("general.architecture", to);
  }

  engine::TensorView* tensor(const std::string& name) {
    for (engine::TensorView& view : tensors_) {
      if (view.name == name) return &view;
    }
    return nullptr;
  }
  EditedReader& remove_tensor(const std::string& name) {
    std::erase_if(tensors_, [&](const engine::TensorView& view) { return view.name == name; });
    return *this;
  }
  /// Adds or replaces an f32 tensor.
  EditedReader& set_tensor(const std::string& name, std::vector<std::uint64_t> shape,
                           const std::vector<float>& values) {
    remove_tensor(name);
    engine::TensorView view;
    view.name = keep(name.data(), name.size()).text;
    view.type = engine::StorageType::kF32;
    view.ndim = static_cast<std::uint32_t>(shape.size());
    for (std::size_t i = 0; i < shape.size(); ++i) view.shape[i] = shape[i];
    view.data = keep(values.data(), values.size() * sizeof(float)).bytes;
    tensors_.push_back(view);
    return *this;
  }

  /// Call after the last change.
  std::shared_ptr<EditedReader> finish() const {
    auto done = std::make_shared<EditedReader>(*this);
    done->metadata_.set_file(path());
    for (const engine::MetadataEntry& entry : done->entries_) done->metadata_.add(entry);
    done->metadata_.index();
    done->index_tensors();
    return done;
  }

  const std::string& path() const override { return base_->path(); }
  std::string_view container() const override { return base_->container(); }
  const engine::Metadata& metadata() const override { return metadata_; }
  std::span<const engine::TensorView> tensors() const override { return tensors_; }
  std::uint64_t mapped_bytes() const override { return base_->mapped_bytes(); }
  std::span<const std::string> remarks() const override { return {}; }

 private:
  struct Kept {
    std::string_view text;
    std::span<const std::byte> bytes;
  };
  Kept keep(const void* data, std::size_t size) {
    auto copy = std::make_shared<std::vector<std::byte>>(size + 1);  // never empty, so that data() is not null
    if (size != 0) std::memcpy(copy->data(), data, size);
    kept_.push_back(copy);
    return {{reinterpret_cast<const char*>(copy->data()), size}, {copy->data(), size}};
  }
  EditedReader& set(const std::string& key, engine::ValueType type, const void* data, std::size_t size) {
    remove_key(key);
    const std::string_view kept_key = keep(key.data(), key.size()).text;
    entries_.push_back({kept_key, type, keep(data, size).bytes});
    return *this;
  }

  std::shared_ptr<engine::ModelReader> base_;
  std::vector<engine::MetadataEntry> entries_;
  std::vector<engine::TensorView> tensors_;
  std::vector<std::shared_ptr<std::vector<std::byte>>> kept_;
  engine::Metadata metadata_;
};

}  // namespace hk::test
