// Owned memory that starts on a cache line: the buffers of a forward pass, taken once at load.
//
// Layer: engine/runtime. Move-only, uninitialised unless asked; a failed allocation is hk::Error of kind kResource,
// which says what the memory was for and how much of it there should have been.
#pragma once

#include <cstddef>
#include <cstring>
#include <limits>
#include <new>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "base/error.h"

namespace hk::engine {

inline constexpr std::size_t kCacheLine = 64;  // x86 and most Arm; also the width of the widest vector register

template <typename T>
class AlignedBuffer {
  static_assert(std::is_trivially_copyable_v<T>, "elements are never constructed or destroyed");

 public:
  AlignedBuffer() = default;
  /// `purpose` ends the sentence "not enough memory for ...".
  explicit AlignedBuffer(std::size_t count, const char* purpose = "a buffer", bool zeroed = false) {
    if (count == 0) return;
    if (count > std::numeric_limits<std::size_t>::max() / 2 / sizeof(T)) fail(count, purpose);
    void* memory = ::operator new (count * sizeof(T), std::align_val_t{kCacheLine}, std::nothrow);
    if (memory == nullptr) fail(count, purpose);
    if (zeroed) std::memset(memory, 0, count * sizeof(T));
    data_ = static_cast<T*>(memory);
    size_ = count;
  }
  AlignedBuffer(AlignedBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  AlignedBuffer(const AlignedBuffer&) = delete;
  AlignedBuffer& operator=(const AlignedBuffer&) = delete;
  ~AlignedBuffer() { ::operator delete (data_, std::align_val_t{kCacheLine}); }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::size_t bytes() const { return size_ * sizeof(T); }
  bool empty() const { return size_ == 0; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  std::span<T> span() { return {data_, size_}; }
  std::span<const T> span() const { return {data_, size_}; }

 private:
  [[noreturn]] static void fail(std::size_t count, const char* purpose) {
    throw Error("not enough memory for " + std::string(purpose) + ": " + std::to_string(count) + " elements of " +
                    std::to_string(sizeof(T)) + " bytes were asked for",
                ErrorKind::kResource);
  }

  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace hk::engine
