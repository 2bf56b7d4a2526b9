// Finds the texts of special tokens in a text: leftmost first, longest at one position, in time linear in the text.
//
// Layer: tokenizer. An Aho-Corasick automaton over the reversed texts, fed with the reversed input: at each position
// its state knows the longest token text that *begins* there, which is exactly what leftmost-longest needs, whatever
// the vocabulary. A plain trie tried at every position would be simpler, but costs (text x longest token) on hostile
// vocabularies.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace hk::tokenizer {

class SpecialMatcher {
 public:
  struct Hit {
    std::size_t position;
    std::uint32_t length;
    TokenId id;
  };

  /// `always`: also matched without parse_special. Of equal texts the first one added is found.
  void add(std::string_view text, TokenId id, bool always);
  /// Call once after the last add().
  void finish();

  /// For every position where a token text begins, the longest one; positions descend. With `parse_special` false only
  /// the texts added as `always`.
  void scan(std::string_view text, bool parse_special, std::vector<Hit>& hits) const;

 private:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;
  struct Node {
    std::uint32_t parent;
    std::uint32_t fail = 0;
    std::uint32_t depth;
    std::uint32_t best[2] = {kNone, kNone};  // index into outputs_; [1] counts every text, [0] the `always` ones
    std::uint8_t byte;
  };
  struct Edge {
    std::uint64_t key = ~std::uint64_t{0};
    std::uint32_t child = kNone;
  };
  struct Output {
    TokenId id;
    std::uint32_t length;
  };

  std::uint32_t child(std::uint32_t node, std::uint8_t byte) const;
  void insert_edge(std::uint32_t node, std::uint8_t byte, std::uint32_t target);
  void grow();

  std::vector<Node> nodes_{Node{0, 0, 0, {kNone, kNone}, 0}};
  std::vector<Edge> edges_;
  std::size_t edge_count_ = 0;
  std::vector<Output> outputs_;
  std::array<std::uint32_t, 256> root_{};  // children of the root: most input never leaves it
  bool any_always_ = false;
};

}  // namespace hk::tokenizer
