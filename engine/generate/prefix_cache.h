// Computed beginnings of prompts, kept for whoever begins with the same tokens: now, or later while memory lasts.
//
// Layer: engine/generate. A radix tree over token ids. Two things live in it: announced prompts (who will need which
// beginnings soon; this tells where a snapshot pays) and snapshots (sequences of exactly a node's depth, sharing all
// full pages with the sequences they were forked from). Snapshots are bounded by bytes and leave in the order of their
// last use.
//
// Why exact lengths and not whole pages: a fork costs the copy of one partial page (milliseconds), reading a token
// again costs a pass over the weights. Why snapshots at branches, when a fork can be cut back: models with windows or
// recurrent state cannot be cut back far.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/generate/model.h"

namespace hk::engine {

class PrefixCache {
 public:
  using Path = std::span<const TokenId>;
  /// Keeps a snapshot's pages accounted for while a sequence that shares them runs.
  using Pin = std::shared_ptr<const void>;

  struct Match {
    std::unique_ptr<Sequence> sequence;  ///< null when nothing fits; else a fork that holds a beginning of the path
    Pin pin;
  };
  /// KV memory as the model tells it.
  struct Memory {
    std::function<std::uint64_t(std::size_t positions)> state_bytes;
    std::uint64_t page_bytes = 0;  ///< of one full page, the part that forks share
  };

  /// `limit` 0: keeps nothing.
  PrefixCache(std::uint64_t limit, Memory memory);
  ~PrefixCache();
  PrefixCache(const PrefixCache&) = delete;
  PrefixCache& operator=(const PrefixCache&) = delete;

  bool enabled() const { return limit_ > 0; }

  /// A prompt that will be computed; `path` is the part of it that may come from the cache. Ends with withdraw().
  void announce(Path path);
  void withdraw(Path path);

  /// Longest beginning of `path` that a snapshot holds or can be cut back to, by the look of the tree.
  std::size_t find(Path path) const;
  Match take(Path path);
  /// The first depth in (from, path.size()] at which a snapshot would save other announced prompts enough work;
  /// 0: nowhere. `path` must be announced.
  std::size_t next_mark(Path path, std::size_t from) const;
  /// Keeps `sequence`, which holds exactly `path`. False when there is no room or it is there already.
  bool store(Path path, std::unique_ptr<Sequence> sequence);
  /// Drops the snapshot that was not used for the longest time and is in nobody's use; false when there is none.
  bool evict();

  /// Of all snapshots; pages that a snapshot shares with one above it count once.
  std::uint64_t bytes() const { return bytes_; }
  std::size_t snapshots() const { return snapshots_; }
  /// `positions` of which the first `shared` come from a pinned snapshot.
  std::uint64_t own_bytes(std::size_t positions, std::size_t shared) const;

 private:
  struct Node;
  struct Place {
    Node* node;         // deepest node that the path enters
    std::size_t depth;  // matched tokens; below node->depth when the path ends or departs within its edge
  };

  Place walk(Path path) const;
  Node* insert(Path path);
  Node* split(Node* node, std::size_t depth);
  void prune(Node* node);
  void drop(Node* node);
  std::uint64_t count_bytes() const;
  /// The snapshot nearest below `node`, or its own.
  Node* nearest_below(Node* node) const;
  void touch(Node* node);

  std::uint64_t limit_;
  Memory memory_;
  std::unique_ptr<Node> root_;
  std::size_t snapshots_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t clock_ = 0;
};

}  // namespace hk::engine
