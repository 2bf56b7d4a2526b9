// Changing the storage type of weight matrices: which tensors change, to what, and the bytes of the result.
//
// Layer: engine/container. Used by convert; rows are decoded and encoded a piece at a time, so memory does not grow
// with the model.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "engine/container/model_reader.h"

namespace hk::engine {

/// Calls work(i) for every i in [0, count), in any order, on any thread; returns when all are done.
using ParallelFor = std::function<void(std::size_t count, const std::function<void(std::size_t)>& work)>;

/// The type a tensor is to be stored as, and why it is not the one asked for ("" when it is, or when nobody would
/// expect it).
struct StorageChoice {
  StorageType type;
  std::string note;
};

/// What `tensor` becomes when the weights of its model are to be `wanted`. Only matrices that multiply activations
/// change: norms, biases, routers, convolutions and other small tensors keep their type, and so does whatever has no
/// element-wise decode. Rows that are no whole number of blocks take a type of smaller blocks near in size, else keep
/// theirs.
StorageChoice choose_storage(const TensorView& tensor, StorageType wanted);

/// Whether a tensor of type `from` can be stored as `to` without any change of values.
bool keeps_values(StorageType from, StorageType to);

/// Throws hk::Error (usage) with the list of possible names when `name` is no type that can be written.
StorageType parse_target_type(std::string_view name);

/// Hands `tensor` re-encoded as `type` to `sink`, in order, a few MiB at a time.
void reencode(const TensorView& tensor, StorageType type, const ParallelFor& parallel,
              const std::function<void(std::span<const std::byte>)>& sink);

}  // namespace hk::engine
