// Hyper-parameters of one architecture (see keys.h).
#include "models/keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"

namespace hk::models {

namespace {

// Counts are multiplied in pairs when shapes are formed; below 2^31 no product of two overflows.
constexpr std::int64_t kCountLimit = std::int64_t{1} << 31;

// What files say about themselves without a bearing on text: the embedding's rows are the vocabulary, sections of a
// rotation are for images, the others tell how the weights came about.
constexpr std::string_view kDescriptions[] = {"vocab_size", "rope.dimension_sections", "rope.scaling.finetuned",
                                              "tensor_data_layout"};

}  // namespace

Keys::Keys(const engine::ModelReader& reader, std::string architecture)
    : reader_(reader), architecture_(std::move(architecture)) {}

std::string Keys::full(std::string_view key) const { return fmt::format("{}.{}", architecture_, key); }

const engine::Metadata& Keys::metadata(std::string_view whole_key) const {
  asked_.emplace(whole_key);
  return reader_.metadata();
}

std::vector<std::string> Keys::unused() const {
  const std::string prefix = architecture_ + ".";
  std::vector<std::string> keys;
  for (const engine::MetadataEntry& entry : reader_.metadata().entries()) {
    if (!entry.key.starts_with(prefix) || asked_.contains(std::string(entry.key))) continue;
    const std::string_view rest = entry.key.substr(prefix.size());
    if (std::ranges::find(kDescriptions, rest) == std::end(kDescriptions)) keys.emplace_back(entry.key);
  }
  return keys;
}

bool Keys::contains(std::string_view key) const {
  const std::string whole_key = full(key);
  return metadata(whole_key).contains(whole_key);
}

void Keys::refuse(std::string_view whole_key, std::string_view found, std::string_view expected) const {
  throw Error(fmt::format("{}: the key '{}' is {}, but the {} model expects {}", file(), whole_key, found,
                          architecture_, expected));
}

void Keys::missing(std::string_view key, std::string_view what) const {
  throw Error(fmt::format("{}: the key '{}' ({}) is missing, and a {} model cannot be run without it", file(),
                          full(key), what, architecture_));
}

std::optional<double> Keys::find_number(const std::string& whole_key) const {
  const auto value = metadata(whole_key).number(whole_key);
  // It is computed with in f32.
  if (value && !(std::abs(*value) <= std::numeric_limits<float>::max()))
    refuse(whole_key, fmt::format("{}", *value), "a finite number of single precision");
  return value;
}

std::optional<std::size_t> Keys::find_count(const std::string& whole_key) const {
  const auto value = metadata(whole_key).integer(whole_key);
  if (!value) return std::nullopt;
  if (*value < 0 || *value >= kCountLimit)
    refuse(whole_key, fmt::format("{}", *value), "a number from 0 to 2147483647");
  return static_cast<std::size_t>(*value);
}

std::size_t Keys::count(std::string_view key) const {
  const auto value = find_count(full(key));
  if (!value) missing(key, "a whole number");
  if (*value == 0) refuse(full(key), "0", "at least 1");
  return *value;
}

std::size_t Keys::count_or(std::string_view key, std::size_t fallback) const {
  return find_count(full(key)).value_or(fallback);
}

std::size_t Keys::positive_count_or(std::string_view key, std::size_t fallback) const {
  return contains(key) ? count(key) : fallback;
}

double Keys::number(std::string_view key) const {
  const auto value = find_number(full(key));
  if (!value) missing(key, "a number");
  return *value;
}

double Keys::number_or(std::string_view key, double fallback) const {
  return find_number(full(key)).value_or(fallback);
}

double Keys::positive(std::string_view key) const {
  const double value = number(key);
  if (value <= 0) refuse(full(key), fmt::format("{}", value), "a number above 0");
  return value;
}

double Keys::positive_or(std::string_view key, double fallback) const {
  return contains(key) ? positive(key) : fallback;
}

double Keys::limit_or(std::string_view key, double fallback) const {
  const double value = number_or(key, fallback);
  if (value < 0) refuse(full(key), fmt::format("{}", value), "a limit above 0, or 0 for none");
  return value;
}

bool Keys::flag_or(std::string_view key, bool fallback) const {
  const std::string whole_key = full(key);
  return metadata(whole_key).boolean(whole_key).value_or(fallback);
}

std::optional<std::string_view> Keys::text(std::string_view key) const { return plain_text(full(key)); }

PerLayer Keys::per_layer(std::string_view key, std::size_t layers) const {
  const std::string whole_key = full(key);
  if (!metadata(whole_key).is_array(whole_key)) {
    const auto value = find_count(whole_key);
    if (!value) missing(key, "a whole number or one for each layer");
    return PerLayer(*value);
  }
  const auto values = metadata(whole_key).integers(whole_key);
  if (!values || values->size() != layers)
    refuse(whole_key, fmt::format("a list of {}", values ? values->size() : 0),
           fmt::format("one number for each of the {} layers", layers));
  std::vector<std::size_t> each;
  each.reserve(values->size());
  for (const std::int32_t value : *values) {
    if (value < 0) refuse(whole_key, fmt::format("a list with {}", value), "numbers from 0 to 2147483647");
    each.push_back(static_cast<std::size_t>(value));
  }
  return PerLayer(std::move(each));
}

PerLayer Keys::per_layer_or(std::string_view key, std::size_t layers, PerLayer fallback) const {
  return contains(key) ? per_layer(key, layers) : std::move(fallback);
}

std::vector<float> Keys::plain_numbers(std::string_view whole_key, std::size_t n) const {
  if (!metadata(whole_key).is_array(whole_key)) {
    const auto value = find_number(std::string(whole_key));
    if (!value) refuse(whole_key, "missing", fmt::format("one number or a list of {}", n));
    return std::vector<float>(n, static_cast<float>(*value));
  }
  auto values = metadata(whole_key).floats(whole_key);
  if (!values || values->size() != n)
    refuse(whole_key, fmt::format("a list of {}", values ? values->size() : 0), fmt::format("a list of {} numbers", n));
  for (const float value : *values) {
    if (!std::isfinite(value)) refuse(whole_key, fmt::format("a list with {}", value), "finite numbers");
  }
  return std::move(*values);
}

std::optional<double> Keys::plain_number(std::string_view whole_key) const {
  return find_number(std::string(whole_key));
}

std::optional<std::string_view> Keys::plain_text(std::string_view whole_key) const {
  return metadata(whole_key).string(whole_key);
}

std::string read_architecture(const engine::ModelReader& reader) {
  auto architecture = reader.metadata().string("general.architecture");
  if (!architecture) architecture = reader.metadata().string("architecture");
  if (!architecture)
    throw Error(
        fmt::format("{}: the key 'general.architecture' is missing, so the model family is not known", reader.path()));
  return std::string(*architecture);
}

}  // namespace hk::models
