// Several copies of the residual stream (see streams.h).
#include "models/streams.h"

#include <algorithm>
#include <cmath>

namespace hk::models {

std::size_t Streams::bytes() const {
  std::size_t bytes = x_rows_.bytes() + router_rows_.bytes();
  for (const RowBuffer* buffer :
       {&streams_buffer_, &predicted_buffer_, &router_buffer_, &weights_buffer_, &other_buffer_})
    bytes += buffer->bytes();
  return bytes;
}

Rows Streams::all_of(std::size_t index) const { return {stream(index, 0), streams_.stride, rows_, streams_.cols}; }

/// Scales x to the length of another vector; a vector of no length stays.
void Streams::match_length(const float* like, float* x) const {
  const auto length = [&](const float* v) {
    float sum = 0;
    for (std::size_t c = 0; c < streams_.cols; ++c) sum += v[c] * v[c];
    return std::sqrt(sum);
  };
  const float own = length(x);
  if (own > 0) stage_.kernels.scale(x, length(like) / own, streams_.cols);
}

void Streams::start(const Rows& x) {
  const MatrixBank& up = stage_.spec.streams.up;
  rows_ = x.n;
  streams_ = streams_buffer_.shape(count() * rows_, x.cols);
  const Matrix any = up[0];
  x_rows_.begin(x, {&any});
  for_rows(stage_.pool, rows_, [&](std::size_t i) {
    std::copy_n(x[i], x.cols, stream(0, i));
    x_rows_.prepare_row(i);
  });
  for (std::size_t s = 1; s < count(); ++s) stage_.products.add(up[s - 1], x_rows_, all_of(s));
  stage_.products.run("streams");
  for_rows(stage_.pool, rows_, [&](std::size_t i) {
    for (std::size_t s = 1; s < count(); ++s) match_length(x[i], stream(s, i));
  });
}

/// A weight of each stream for each row of x, between -1 and 1.
void Streams::weigh(const StreamsUseSpec& spec, const Rows& x) {
  const Rows normed = router_buffer_.shape(rows_, x.cols);
  router_rows_.begin(normed, {&spec.router});
  for_rows(stage_.pool, rows_, [&](std::size_t i) {
    stage_.norm(spec.router_norm, x[i], x.cols, normed[i]);
    router_rows_.prepare_row(i);
  });
  weights_ = weights_buffer_.shape(rows_, count());
  stage_.products.add(spec.router, router_rows_, weights_);
  stage_.products.run("streams");
  for_rows(stage_.pool, rows_, [&](std::size_t i) {
    for (std::size_t s = 0; s < count(); ++s) weights_[i][s] = std::tanh(weights_[i][s]);
  });
}

void Streams::predict(const StreamsUseSpec& spec, const Rows& x) {
  weigh(spec, all_of(0));
  const Rows predicted = predicted_buffer_.shape(rows_ * count(), x.cols);
  for_rows(stage_.pool, rows_, [&](std::size_t i) {
    for (std::size_t to = 0; to < count(); ++to) {
      float* sum = predicted[i * count() + to];
      std::copy_n(stream(to, i), x.cols, sum);
      for (std::size_t from = 0; from < count(); ++from) {
        const float* learned = spec.predict + (to * count() + from) * count();
        float share = 0;
        for (std::size_t s = 0; s < count(); ++s) share += learned[s] * weights_[i][s];
        stage_.kernels.add_scaled(sum, stream(from, i), share, x.cols);
      }
    }
    for (std::size_t s = 0; s < count(); ++s) std::copy_n(predicted[i * count() + s], x.cols, stream(s, i));
    std::copy_n(stream(0, i), x.cols, x[i]);
  });
}

void Streams::correct(const StreamsUseSpec& spec, const Rows& x) {
  weigh(spec, x);
  for_rows(stage_.pool, rows_, [&](std::size_t i) {
    for (std::size_t c = 0; c < x.cols; ++c) x[i][c] -= stream(0, i)[c];  // what the layer found
    for (std::size_t to = 0; to < count(); ++to) {
      float share = 1;
      for (std::size_t s = 0; s < count(); ++s) share += spec.correct[to * count() + s] * weights_[i][s];
      stage_.kernels.add_scaled(stream(to, i), x[i], share, x.cols);
    }
    for (std::size_t c = 0; c < x.cols; ++c) x[i][c] = stream(0, i)[c] * spec.scale[c];
  });
}

void Streams::add_to_others(const Rows& part) {
  for_rows(stage_.pool, rows_, [&](std::size_t i) {
    for (std::size_t s = 1; s < count(); ++s) stage_.kernels.add(stream(s, i), part[i], part.cols);
  });
}

void Streams::finish(const Rows& x) {
  const MatrixBank& down = stage_.spec.streams.down;
  const Matrix any = down[0];
  for_rows(stage_.pool, rows_, [&](std::size_t i) { std::copy_n(stream(0, i), x.cols, x[i]); });
  const Rows other = other_buffer_.shape(rows_, x.cols);
  for (std::size_t s = 1; s < count(); ++s) {
    x_rows_.begin(all_of(s), {&any});
    for_rows(stage_.pool, rows_, [&](std::size_t i) { x_rows_.prepare_row(i); });
    stage_.products.add(down[s - 1], x_rows_, other);
    stage_.products.run("streams");
    for_rows(stage_.pool, rows_, [&](std::size_t i) {
      match_length(stream(0, i), other[i]);
      stage_.kernels.add(x[i], other[i], x.cols);
    });
  }
  for_rows(stage_.pool, rows_,
           [&](std::size_t i) { stage_.kernels.scale(x[i], 1.0F / static_cast<float>(count()), x.cols); });
}

}  // namespace hk::models
