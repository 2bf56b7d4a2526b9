// Building and running the automaton over reversed special texts.
#include "tokenizer/special_matcher.h"

#include <numeric>

#include "tokenizer/hash.h"

namespace hk::tokenizer {

void SpecialMatcher::add(std::string_view text, TokenId id, bool always) {
  if (text.empty()) return;
  std::uint32_t node = 0;
  for (std::size_t i = text.size(); i-- > 0;) {
    const auto byte = static_cast<std::uint8_t>(text[i]);
    std::uint32_t next = child(node, byte);
    if (next == kNone) {
      next = static_cast<std::uint32_t>(nodes_.size());
      nodes_.push_back({node, 0, nodes_[node].depth + 1, {kNone, kNone}, byte});
      insert_edge(node, byte, next);
    }
    node = next;
  }
  const auto output = static_cast<std::uint32_t>(outputs_.size());
  outputs_.push_back({id, static_cast<std::uint32_t>(text.size())});
  if (nodes_[node].best[1] == kNone) nodes_[node].best[1] = output;
  if (always && nodes_[node].best[0] == kNone) nodes_[node].best[0] = output;
  any_always_ = any_always_ || always;
}

void SpecialMatcher::finish() {
  // Shorter reversed texts first: a node's failure target is always shallower than the node.
  std::vector<std::uint32_t> count;
  for (const Node& node : nodes_) {
    if (node.depth >= count.size()) count.resize(node.depth + 1);
    ++count[node.depth];
  }
  std::exclusive_scan(count.begin(), count.end(), count.begin(), 0U);
  std::vector<std::uint32_t> order(nodes_.size());
  for (std::uint32_t i = 0; i < nodes_.size(); ++i) order[count[nodes_[i].depth]++] = i;
  for (const std::uint32_t i : order) {
    Node& node = nodes_[i];
    if (node.depth == 0) continue;
    if (node.depth > 1) {
      std::uint32_t state = nodes_[node.parent].fail;
      std::uint32_t next;
      while ((next = child(state, node.byte)) == kNone && state != 0) state = nodes_[state].fail;
      node.fail = next == kNone ? 0 : next;
    }
    // A token that ends the path is longer than any that ends a proper suffix of it.
    for (int k = 0; k < 2; ++k)
      if (node.best[k] == kNone) node.best[k] = nodes_[node.fail].best[k];
  }
}

void SpecialMatcher::scan(std::string_view text, bool parse_special, std::vector<Hit>& hits) const {
  hits.clear();
  if (outputs_.empty() || (!parse_special && !any_always_)) return;
  const int kind = parse_special ? 1 : 0;
  std::uint32_t state = 0;
  for (std::size_t i = text.size(); i-- > 0;) {
    const auto byte = static_cast<std::uint8_t>(text[i]);
    std::uint32_t next;
    while ((next = child(state, byte)) == kNone && state != 0) state = nodes_[state].fail;
    state = next == kNone ? 0 : next;
    if (state == 0) continue;
    const std::uint32_t best = nodes_[state].best[kind];
    if (best != kNone) hits.push_back({i, outputs_[best].length, outputs_[best].id});
  }
}

std::uint32_t SpecialMatcher::child(std::uint32_t node, std::uint8_t byte) const {
  if (node == 0) return root_[byte] == 0 ? kNone : root_[byte];
  if (edges_.empty()) return kNone;
  const std::uint64_t key = (static_cast<std::uint64_t>(node) << 8) | byte;
  for (std::size_t at = slot_of(hash_pair(node, byte), edges_.size());; at = at + 1 == edges_.size() ? 0 : at + 1) {
    if (edges_[at].key == key) return edges_[at].child;
    if (edges_[at].child == kNone) return kNone;
  }
}

void SpecialMatcher::insert_edge(std::uint32_t node, std::uint8_t byte, std::uint32_t target) {
  if (node == 0) {
    root_[byte] = target;
    return;
  }
  if ((edge_count_ + 1) * 3 > edges_.size() * 2) grow();
  std::size_t at = slot_of(hash_pair(node, byte), edges_.size());
  while (edges_[at].child != kNone) at = at + 1 == edges_.size() ? 0 : at + 1;
  edges_[at] = {(static_cast<std::uint64_t>(node) << 8) | byte, target};
  ++edge_count_;
}

void SpecialMatcher::grow() {
  std::vector<Edge> old(edges_.size() * 2 + 64);
  old.swap(edges_);
  edge_count_ = 0;
  for (const Edge& edge : old)
    if (edge.child != kNone)
      insert_edge(static_cast<std::uint32_t>(edge.key >> 8), static_cast<std::uint8_t>(edge.key), edge.child);
}

}  // namespace hk::tokenizer
