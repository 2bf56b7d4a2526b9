// A sentence instead of a bus error when a mapped file can no longer be read: it was shortened, or its disk failed.
//
// Layer: engine/container. There is nothing to return to: the weights are gone in the middle of a computation. So the
// program says which file it was and ends, instead of dying of a signal that tells nobody anything.
#pragma once

#include <cstddef>
#include <span>

namespace hk::engine {

/// From now on: "<program>: <file>: ..." on stderr and exit code 1. Other bus errors end the program as before.
/// `program` must live on.
void install_mapping_guard(const char* program);

/// For MappedFile: which bytes belong to which file. Beyond some thousand files the rest is not guarded.
void guard_mapping(std::span<const std::byte> bytes, const char* path);
void unguard_mapping(const std::byte* begin);

}  // namespace hk::engine
