// How far the logits of one run are from those of another: largest and mean difference, divergence of the predictions.
//
// Layer: cli.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace hk::cli {

class LogitsDifference {
 public:
  /// `path`: what hk-run logits wrote for `rows` positions of `vocab` values. Throws hk::Error when it is not that.
  LogitsDifference(const std::string& path, std::size_t rows, std::size_t vocab);

  /// The next rows of this run.
  void add(std::span<const float> rows);
  /// "largest difference 0.012, rms 0.0015 of 2.31, KL divergence 0.000012 nats a position, ...".
  std::string text() const;

 private:
  void add_row(const float* reference, const float* row);

  std::size_t vocab_, at_ = 0, same_best_ = 0;
  std::vector<float> reference_;
  double largest_ = 0, squares_ = 0, reference_squares_ = 0, divergence_ = 0, largest_divergence_ = 0;
};

}  // namespace hk::cli
