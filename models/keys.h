// Hyper-parameters of one architecture: typed reading of `<arch>.KEY` with limits, and refusals that name key and file.
//
// Layer: models. Used by family files at load only.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "engine/container/model_reader.h"

namespace hk::models {

/// A number for all layers, or a list with one for each.
class PerLayer {
 public:
  PerLayer() = default;
  explicit PerLayer(std::size_t all) : all_(all) {}
  explicit PerLayer(std::vector<std::size_t> each) : each_(std::move(each)) {}
  std::size_t operator[](std::size_t layer) const { return each_.empty() ? all_ : each_[layer]; }
  bool uniform() const { return each_.empty(); }

 private:
  std::size_t all_ = 0;
  std::vector<std::size_t> each_;
};

class Keys {
 public:
  Keys(const engine::ModelReader& reader, std::string architecture);

  const std::string& architecture() const { return architecture_; }
  const std::string& file() const { return reader_.path(); }
  std::string full(std::string_view key) const;
  bool contains(std::string_view key) const;

  /// A whole number in [1, 2^31).
  std::size_t count(std::string_view key) const;
  /// A whole number in [0, 2^31).
  std::size_t count_or(std::string_view key, std::size_t fallback) const;
  /// A whole number in [1, 2^31) when the key is there.
  std::size_t positive_count_or(std::string_view key, std::size_t fallback) const;
  /// A number that f32 can hold.
  double number(std::string_view key) const;
  double number_or(std::string_view key, double fallback) const;
  /// A finite number above zero.
  double positive(std::string_view key) const;
  double positive_or(std::string_view key, double fallback) const;
  /// The same from zero on: limits and caps, of which 0 means none.
  double limit_or(std::string_view key, double fallback) const;
  bool flag_or(std::string_view key, bool fallback) const;
  std::optional<std::string_view> text(std::string_view key) const;
  /// One number in [0, 2^31) or a list of `layers` of them (a longer list is refused).
  PerLayer per_layer(std::string_view key, std::size_t layers) const;
  PerLayer per_layer_or(std::string_view key, std::size_t layers, PerLayer fallback) const;

  /// Finite numbers under a key without the architecture's prefix (`hk.rope.beta_fast`).
  std::optional<double> plain_number(std::string_view whole_key) const;
  /// One finite number for all of `n`, or a list of them.
  std::vector<float> plain_numbers(std::string_view whole_key, std::size_t n) const;
  std::optional<std::string_view> plain_text(std::string_view whole_key) const;

  /// Keys of this architecture in the file that nobody asked for and that would change what is computed if somebody
  /// did, in file order.
  std::vector<std::string> unused() const;

  /// Throws: "<file>: <key> is <found>; the <architecture> model expects <expected>".
  [[noreturn]] void refuse(std::string_view whole_key, std::string_view found, std::string_view expected) const;

 private:
  std::optional<double> find_number(const std::string& whole_key) const;
  std::optional<std::size_t> find_count(const std::string& whole_key) const;
  [[noreturn]] void missing(std::string_view key, std::string_view what) const;
  /// The file's metadata, of which the caller is about to read this key.
  const engine::Metadata& metadata(std::string_view whole_key) const;

  const engine::ModelReader& reader_;
  std::string architecture_;
  mutable std::unordered_set<std::string> asked_;
};

/// general.architecture (or the older spelling `architecture`); throws hk::Error when neither is there.
std::string read_architecture(const engine::ModelReader& reader);

}  // namespace hk::models
