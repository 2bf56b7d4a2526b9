// Hyper-parameters of one architecture (see keys.h).
#include "models/keys.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "base/error.h"

namespace hk::models {

namespace {

// Counts are multiplied in pairs when shapes are formed; below 2^31 no product of two overflows.
constexpr std::int64_t kCountLimit = std::int64_t{1} << 31;

}  // namespace

Keys::Keys(const engine::ModelReader& reader, std::string architecture)
    : reader_(reader), architecture_(std::move(architecture)) {}

std::string Keys::full(std::string_view key) const { return fmt::format("{}.{}", architecture_, key); }

bool Keys::contains(std::string_view key) const { return reader_.metadata().contains(full(key)); }

void Keys::refuse(std::string_view whole_key, std::string_view found, std::string_view expected) const {
  throw Error(fmt::format("{}: the key '{}' is {}, but the {} model expects {}", file(), whole_key, found,
                          architecture_, expected));
}

void Keys::missing(std::string_view key, std::string_view what) const {
  throw Error(fmt::format("{}: the key '{}' ({}) is missing, and a {} model cannot be run without it", file(),
                          full(key), what, architecture_));
}

std::optional<double> Keys::find_number(const std::string& whole_key) const {
  const auto value = reader_.metadata().number(whole_key);
  if (value && !std::isfinite(*value)) refuse(whole_key, fmt::format("{}", *value), "a finite number");
  return value;
}

std::optional<std::size_t> Keys::find_count(const std::string& whole_key) const {
  const auto value = reader_.metadata().integer(whole_key);
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

bool Keys::flag_or(std::string_view key, bool fallback) const {
  return reader_.metadata().boolean(full(key)).value_or(fallback);
}

std::optional<std::string_view> Keys::text(std::string_view key) const { return reader_.metadata().string(full(key)); }

PerLayer Keys::per_layer(std::string_view key, std::size_t layers) const {
  const std::string whole_key = full(key);
  if (!reader_.metadata().is_array(whole_key)) {
    const auto value = find_count(whole_key);
    if (!value) missing(key, "a whole number or one for each layer");
    return PerLayer(*value);
  }
  const auto values = reader_.metadata().integers(whole_key);
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
  if (!reader_.metadata().is_array(whole_key)) {
    const auto value = find_number(std::string(whole_key));
    if (!value) refuse(whole_key, "missing", fmt::format("one number or a list of {}", n));
    return std::vector<float>(n, static_cast<float>(*value));
  }
  auto values = reader_.metadata().floats(whole_key);
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
  return reader_.metadata().string(whole_key);
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
