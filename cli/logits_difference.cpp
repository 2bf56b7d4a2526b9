// Differences between the logits of two runs (see logits_difference.h).
#include "cli/logits_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "base/error.h"

namespace hk::cli {
namespace {

/// log of the sum of exponentials.
double log_sum(const float* row, std::size_t n) {
  const double top = static_cast<double>(*std::max_element(row, row + n));
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += std::exp(static_cast<double>(row[i]) - top);
  return top + std::log(sum);
}

}  // namespace

LogitsDifference::LogitsDifference(const std::string& path, std::size_t rows, std::size_t vocab)
    : vocab_(vocab), reference_(rows * vocab) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) throw Error(fmt::format("--against: {} cannot be opened", path));
  const auto bytes = static_cast<std::uint64_t>(in.tellg()), expected = std::uint64_t{rows} * vocab * sizeof(float);
  if (bytes != expected)
    throw Error(fmt::format("--against: {} holds {} bytes, but {} positions of {} values take {}", path, bytes, rows,
                            vocab, expected));
  in.seekg(0);
  in.read(reinterpret_cast<char*>(reference_.data()), static_cast<std::streamsize>(expected));
  if (!in) throw Error(fmt::format("--against: {} cannot be read", path));
}

void LogitsDifference::add(std::span<const float> rows) {
  for (std::size_t at = 0; at + vocab_ <= rows.size(); at += vocab_, ++at_)
    add_row(reference_.data() + at_ * vocab_, rows.data() + at);
}

void LogitsDifference::add_row(const float* reference, const float* row) {
  const double whole = log_sum(reference, vocab_), other = log_sum(row, vocab_);
  double divergence = 0;
  for (std::size_t i = 0; i < vocab_; ++i) {
    const double expected = static_cast<double>(reference[i]), got = static_cast<double>(row[i]);
    largest_ = std::max(largest_, std::abs(got - expected));
    squares_ += (got - expected) * (got - expected);
    reference_squares_ += expected * expected;
    divergence += std::exp(expected - whole) * ((expected - whole) - (got - other));
  }
  divergence_ += divergence;
  largest_divergence_ = std::max(largest_divergence_, divergence);
  same_best_ +=
      std::max_element(reference, reference + vocab_) - reference == std::max_element(row, row + vocab_) - row;
}

std::string LogitsDifference::text() const {
  const double rows = static_cast<double>(at_), values = rows * static_cast<double>(vocab_);
  return fmt::format(
      "{} positions: largest difference {:.4g}, rms {:.4g} of {:.4g}, KL divergence {:.3g} nats a position (largest "
      "{:.3g}), same best token {:.2f} %",
      at_, largest_, std::sqrt(squares_ / values), std::sqrt(reference_squares_ / values), divergence_ / rows,
      largest_divergence_, 100.0 * static_cast<double>(same_best_) / rows);
}

}  // namespace hk::cli
