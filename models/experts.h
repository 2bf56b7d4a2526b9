// A mixture of experts: the rows of a chunk grouped by expert, each group through the same matrix kernels.
//
// Layer: models. Only the experts that some row chose are read. A row's result is the sum of its experts in the order
// of its own choice, so it does not depend on which other rows are there.
#pragma once

#include <cstddef>
#include <vector>

#include "models/feed_forward.h"
#include "models/router.h"
#include "models/stage.h"

namespace hk::models {

class Experts {
 public:
  explicit Experts(Stage& stage);

  /// From input rows prepared for `matrices_of(spec)` to rows of the model's width, valid until the next call.
  /// `router_input` is null when the router reads the same rows.
  Rows run(const ExpertsSpec& spec, const PreparedRows& input, const Rows* router_input);

  std::size_t bytes() const;

 private:
  void choose(const ExpertsSpec& spec, std::size_t n);
  void group(std::size_t experts, std::size_t n, std::size_t used);
  const PreparedRows& gather(const ExpertsSpec& spec, const PreparedRows& input);
  void multiply_up(const ExpertsSpec& spec, const PreparedRows& picked);
  void multiply_down(const ExpertsSpec& spec);
  Rows combine(const ExpertsSpec& spec, std::size_t n, const Rows& shared);

  Stage& stage_;
  FeedForward shared_;
  PreparedRows router_rows_, picked_, inner_;
  RowBuffer router_buffer_, logits_buffer_, scratch_buffer_, shared_gate_buffer_, weighed_buffer_, gate_buffer_,
      up_buffer_, down_buffer_, out_buffer_;
  Rows logits_, scratch_, shared_gate_, gate_, up_, down_;
  std::vector<ChosenExpert> chosen_;     // of row i: entries [i * used, (i + 1) * used)
  std::vector<std::uint32_t> place_;     // of each choice: its row among the grouped ones
  std::vector<std::uint32_t> choice_;    // of each grouped row: its choice
  std::vector<std::uint32_t> first_of_;  // of each expert: its first grouped row; one more entry for the end
  std::vector<std::uint32_t> next_of_;
};

}  // namespace hk::models
