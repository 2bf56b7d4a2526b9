// One forward pass over a chunk of rows: interprets a ModelSpec layer by layer.
//
// Layer: models. Owns all buffers; they grow to the largest chunk seen and are then reused, so that a pass allocates
// nothing. Rows are independent except in mixers; each stage shares them, or the weight rows, out among the workers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/generate/model.h"
#include "models/attention_mixer.h"
#include "models/experts.h"
#include "models/feed_forward.h"
#include "models/latent_mixer.h"
#include "models/per_layer_input.h"
#include "models/recurrent/channel_mix.h"
#include "models/recurrent/delta.h"
#include "models/recurrent/scan.h"
#include "models/recurrent/short_convolution.h"
#include "models/recurrent/time_mix.h"
#include "models/spec.h"
#include "models/stage.h"
#include "models/streams.h"

namespace hk::models {

/// How a call follows and stops its passes.
struct PassControl {
  const std::function<bool()>& cancelled;
  /// Told after every layer: tokens of the call that are done, a pass's rows counted in proportion, and all.
  const std::function<void(std::size_t done, std::size_t total)>& progress;
  std::size_t done = 0;   ///< tokens of the call before this pass
  std::size_t total = 0;  ///< tokens of the call
};

class Pass {
 public:
  Pass(const ModelSpec& spec, const kernels::KernelTable& kernels, engine::ThreadPool& pool);

  /// Computes the rows of `segments` (row i holds tokens[i]; the sequences are prepared for them), writes keys and
  /// values, and for each row in `wanted` (rising) a row of vocab_size logits to `logits`. False when `cancelled` said
  /// so; then nothing is promised about positions from the segments' on.
  bool run(std::span<const Segment> segments, std::span<const engine::TokenId> tokens,
           std::span<const std::uint32_t> wanted, float* logits, const PassControl& control);

  std::size_t bytes() const;

 private:
  using Matrices = std::initializer_list<const Matrix*>;

  void place_rows(std::span<const Segment> segments, std::size_t n);
  void fill_angles(std::size_t n);
  void embed(std::span<const engine::TokenId> tokens);
  void run_layer(std::size_t index, std::span<const std::uint32_t> wanted);
  bool drops_rows(std::size_t index) const;
  void keep_rows(const LayerSpec& layer, std::span<const std::uint32_t> wanted, Rows& mixed);
  /// x normalised, or x itself without a norm, prepared for the matrices.
  void normalise(const NormSpec& norm, const Rows& x, RowBuffer& into, PreparedRows& prepared, Matrices matrices);
  Rows mix(const LayerSpec& layer);
  Rows feed_forward(const LayerSpec& layer);
  Rows experts(const LayerSpec& layer, const NormSpec& norm, const Rows& x);
  Rows dense_and_experts(const LayerSpec& layer);
  void add_low_branch(const LowBranchSpec& spec);
  void end_layer(const LayerSpec& layer, std::size_t index);
  void add_branch(const NormSpec& post_norm, float scale, const Rows& branch);
  void output(std::span<const std::uint32_t> wanted, float* logits);

  const ModelSpec& spec_;
  Stage stage_;
  Attention attend_;
  AttentionMixer attention_;
  LatentMixer latent_;
  ShortConvolutionMixer short_convolution_;
  DeltaMixer delta_;
  ScanMixer scan_;
  TimeMixer time_mix_;
  ChannelMixer channel_mix_;
  PerLayerInput per_layer_input_;
  Streams streams_;
  FeedForward feed_forward_;
  Experts experts_;

  PreparedRows mixer_rows_, feed_forward_rows_, low_rows_;
  RowBuffer x_buffer_, layer_input_buffer_, normed_buffer_, low_buffer_, low_out_buffer_;
  Rows x_, layer_input_;
  bool rows_dropped_ = false;  // x_ holds the wanted rows alone
};

}  // namespace hk::models
