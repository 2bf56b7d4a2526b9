// What a model remembers of a conversation, kept in a file beside it, so that a later process need not read it again.
//
// Layer: engine/generate. Pages lie at fixed places of the file, each with its token ids and checksums, so that a save
// writes only pages that have changed. The file is a cache: whatever is torn, foreign or old is not used, and what is
// before it is. Nothing is synced: after a power cut the checksums tell what arrived.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/generate/session.h"

namespace hk::engine {

class StateFile {
 public:
  /// `identity`: of everything that the state depends on besides the tokens (model, cache type, context, kernels).
  StateFile(std::string path, std::uint64_t identity) : path_(std::move(path)), identity_(identity) {}
  ~StateFile() { close(); }
  StateFile(const StateFile&) = delete;
  StateFile& operator=(const StateFile&) = delete;

  struct Loaded {
    std::size_t positions = 0;  ///< restored; the session then holds them
    std::string problem;        ///< why it is not all, one sentence; "" when there is nothing to say
  };
  /// Fills an empty session with as much as can be used. Never throws for what is in the file.
  Loaded load(Session& session);

  /// Bytes that the file has after a save.
  std::uint64_t size_after_save(const Session& session) const;
  /// Makes the file hold what `session` holds. Throws hk::Error (kResource) when it cannot be written.
  void save(const Session& session);
  /// Removes the file.
  void remove();

 private:
  struct Layout;
  void open_file(bool create);
  void close();
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  void write_header(const Layout& layout, std::size_t length);
  void write_page(const Layout& layout, std::size_t page, std::span<const TokenId> ids,
                  std::span<const StatePart> parts);

  std::string path_;
  std::uint64_t identity_;
  int file_ = -1;
  std::vector<TokenId> saved_;              // ids whose pages are in the file
  std::vector<std::uint64_t> saved_sizes_;  // of the groups, as the file was laid out
};

}  // namespace hk::engine
