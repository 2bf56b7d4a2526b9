// engine::Model for every family: checks a batch, cuts it into chunks of rows, runs them and keeps sequences
// consistent.
//
// Layer: models. What the model computes is data (ModelSpec); how a chunk is computed is Pass.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/container/model_reader.h"
#include "engine/generate/model.h"
#include "engine/runtime/thread_pool.h"
#include "kernels/kernels.h"
#include "models/kv_cache.h"
#include "models/pass.h"
#include "models/spec.h"

namespace hk::models {

class Transformer final : public engine::Model {
 public:
  Transformer(std::shared_ptr<engine::ModelReader> reader, ModelSpec spec, engine::ModelInfo info,
              const kernels::KernelTable& kernels, engine::ThreadPool& pool);

  const engine::ModelInfo& info() const override { return info_; }
  std::unique_ptr<engine::Sequence> new_sequence(const engine::SequenceOptions& options) override;
  std::uint64_t state_bytes(const engine::SequenceOptions& options, std::size_t positions) const override;
  std::span<const float> forward(std::span<const engine::BatchItem> items,
                                 const engine::ForwardControl& control) override;
  std::uint64_t scratch_bytes() const override;
  std::uint64_t expected_scratch_bytes(std::size_t positions, std::size_t logit_rows) const override;

 private:
  /// One item of the running call.
  struct Work {
    KvSequence* sequence;
    std::span<const engine::TokenId> tokens;
    engine::LogitsFor logits;
    std::size_t start;  ///< length before the call
    std::size_t done;   ///< tokens given to chunks
  };

  void accept(std::span<const engine::BatchItem> items);
  std::size_t next_chunk();
  bool run_chunks(const engine::ForwardControl& control, std::size_t total);
  void roll_back();

  std::shared_ptr<engine::ModelReader> reader_;  // keeps the mapping that spec_ points into
  ModelSpec spec_;
  engine::ModelInfo info_;
  const kernels::KernelTable& kernels_;
  engine::ThreadPool& pool_;
  Pass pass_;

  std::vector<Work> work_;
  std::vector<Segment> segments_;
  std::vector<engine::TokenId> tokens_;
  std::vector<std::uint32_t> wanted_;
  engine::AlignedBuffer<float> logits_;
};

}  // namespace hk::models
