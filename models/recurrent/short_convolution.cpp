// The gated short convolution of LFM2 (see short_convolution.h).
#include "models/recurrent/short_convolution.h"

#include "models/recurrent/parts.h"

namespace hk::models {

Rows ShortConvolutionMixer::run(const ShortConvolutionSpec& spec, const PreparedRows& input) {
  const std::size_t n = input.rows().n;
  const std::size_t width = spec.convolution.channels;
  const Rows in = in_buffer_.shape(n, 3 * width);
  stage_.products.add(spec.in, input, in);
  stage_.products.run("convolution in");

  engine::StageTimer timer("convolution");
  const Rows gated = gated_buffer_.shape(n, width);
  const Rows mixed = mixed_buffer_.shape(n, width);
  for_rows(stage_.pool, n, [&](std::size_t i) {
    const float* b = in[i];
    const float* x = in[i] + 2 * width;
    for (std::size_t c = 0; c < width; ++c) gated[i][c] = b[c] * x[c];
  });
  for_segment_parts(stage_, width, kChannelsATask, [&](const Segment& segment, std::size_t first, std::size_t count) {
    convolve(spec.convolution, segment, gated, mixed, first, count);
  });
  mixed_rows_.begin(mixed, {&spec.out});
  for_rows(stage_.pool, n, [&](std::size_t i) {
    const float* c = in[i] + width;
    for (std::size_t k = 0; k < width; ++k) mixed[i][k] *= c[k];
    mixed_rows_.prepare_row(i);
  });
  timer.stop();
  const Rows out = out_buffer_.shape(n, stage_.spec.width);
  stage_.products.add(spec.out, mixed_rows_, out);
  stage_.products.run("convolution out");
  return out;
}

}  // namespace hk::models
