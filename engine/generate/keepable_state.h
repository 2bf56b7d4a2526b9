// What a sequence offers whose state can be kept outside the process and come back.
//
// Layer: engine/generate. Apart from Sequence, because not every sequence can do this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hk::engine {

/// A piece of a sequence's state: one page of one layer's keys and values, or all of the recurrent layers' state.
struct StatePart {
  static constexpr std::uint32_t kWhole = 0xFFFFFFFF;  ///< as `page`: not a page, replaced as a whole
  std::uint32_t group = 0;                             ///< layer; parts of a group have one size
  std::uint32_t page = 0;                              ///< its positions begin at page * kKvPage
  std::span<const std::byte> bytes;
};

class KeepableState {
 public:
  virtual ~KeepableState() = default;
  /// The state in pieces, valid until the sequence changes. Pages that no later position needs may be missing.
  virtual std::vector<StatePart> state_parts() const = 0;
  /// Makes an empty sequence what one of the same model and options was that held `length` positions and gave `parts`
  /// (of the last page what lies beyond `length` is not looked at). False when they do not fit or are not enough: the
  /// sequence stays empty.
  virtual bool load_state(std::size_t length, std::span<const StatePart> parts) = 0;
};

}  // namespace hk::engine
