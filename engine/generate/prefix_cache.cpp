// Radix tree of prompts and snapshots (see prefix_cache.h).
#include "engine/generate/prefix_cache.h"

#include <algorithm>
#include <map>
#include <utility>

namespace hk::engine {
namespace {

// A snapshot costs a step of its own length limit and the copy of a page. It must save at least this many tokens.
constexpr std::size_t kWorthTokens = 16;
// Bounds the walks over the tree, whatever the byte limit of a very small model allows.
constexpr std::size_t kMaxSnapshots = 1024;

}  // namespace

struct PrefixCache::Node {
  Node* parent = nullptr;
  std::vector<TokenId> edge;  // tokens from the parent to here
  std::size_t depth = 0;
  std::map<TokenId, std::unique_ptr<Node>> children;  // by the first token of their edge
  std::size_t passing = 0;                            // announced prompts that pass through here or end here
  std::size_t ending = 0;
  std::shared_ptr<Sequence> snapshot;
  std::uint64_t used = 0;
};

PrefixCache::PrefixCache(std::uint64_t limit, Memory memory)
    : limit_(limit), memory_(std::move(memory)), root_(std::make_unique<Node>()) {}

PrefixCache::~PrefixCache() {
  // Node by node: a chain of prompts that each continue the one before would be as many nested destructors.
  std::vector<std::unique_ptr<Node>> rest;
  rest.push_back(std::move(root_));
  while (!rest.empty()) {
    const auto node = std::move(rest.back());
    rest.pop_back();
    for (auto& [token, child] : node->children) rest.push_back(std::move(child));
  }
}

PrefixCache::Place PrefixCache::walk(Path path) const {
  Place place{root_.get(), 0};
  while (place.depth < path.size() && place.depth == place.node->depth) {
    const auto child = place.node->children.find(path[place.depth]);
    if (child == place.node->children.end()) break;
    place.node = child->second.get();
    const auto rest = path.subspan(place.depth);
    const auto& edge = place.node->edge;
    const auto length = std::min(edge.size(), rest.size());
    place.depth += static_cast<std::size_t>(
        std::mismatch(edge.begin(), edge.begin() + static_cast<std::ptrdiff_t>(length), rest.begin()).first -
        edge.begin());
  }
  return place;
}

/// Makes a node within the edge that leads to `node`; returns it.
PrefixCache::Node* PrefixCache::split(Node* node, std::size_t depth) {
  Node* parent = node->parent;
  const auto length = static_cast<std::ptrdiff_t>(depth - parent->depth);
  auto& slot = parent->children.at(node->edge.front());
  auto middle = std::make_unique<Node>();
  middle->parent = parent;
  middle->edge.assign(node->edge.begin(), node->edge.begin() + length);
  middle->depth = depth;
  middle->passing = node->passing;
  node->edge.erase(node->edge.begin(), node->edge.begin() + length);
  node->parent = middle.get();
  const TokenId first = node->edge.front();
  middle->children.emplace(first, std::move(slot));
  slot = std::move(middle);
  return slot.get();
}

PrefixCache::Node* PrefixCache::insert(Path path) {
  const Place place = walk(path);
  Node* node = place.depth < place.node->depth ? split(place.node, place.depth) : place.node;
  if (place.depth == path.size()) return node;
  auto leaf = std::make_unique<Node>();
  leaf->parent = node;
  leaf->edge.assign(path.begin() + static_cast<std::ptrdiff_t>(place.depth), path.end());
  leaf->depth = path.size();
  return node->children.emplace(path[place.depth], std::move(leaf)).first->second.get();
}

/// Removes `node` and what is above it as far as nobody needs it.
void PrefixCache::prune(Node* node) {
  while (node->parent != nullptr && node->children.empty() && node->passing == 0 && node->snapshot == nullptr) {
    Node* parent = node->parent;
    parent->children.erase(node->edge.front());
    node = parent;
  }
}

void PrefixCache::announce(Path path) {
  if (!enabled() || path.empty()) return;
  Node* node = insert(path);
  ++node->ending;
  for (; node != nullptr; node = node->parent) ++node->passing;
}

void PrefixCache::withdraw(Path path) {
  if (!enabled() || path.empty()) return;
  Node* end = walk(path).node;
  --end->ending;
  for (Node* node = end; node != nullptr; node = node->parent) --node->passing;
  prune(end);
}

PrefixCache::Node* PrefixCache::nearest_below(Node* node) const {
  std::vector<Node*> level{node};
  std::vector<Node*> next;
  while (!level.empty()) {
    for (Node* candidate : level) {
      if (candidate->snapshot != nullptr) return candidate;
      for (const auto& [token, child] : candidate->children) next.push_back(child.get());
    }
    level.swap(next);
    next.clear();
  }
  return nullptr;
}

std::size_t PrefixCache::find(Path path) const {
  const Place place = walk(path);
  if (nearest_below(place.node) != nullptr) return place.depth;
  for (const Node* node = place.node; node != nullptr; node = node->parent)
    if (node->snapshot != nullptr) return node->depth;
  return 0;
}

void PrefixCache::touch(Node* node) {
  ++clock_;
  // What is above is part of what was used and must not leave first.
  for (; node != nullptr; node = node->parent) node->used = clock_;
}

PrefixCache::Match PrefixCache::take(Path path) {
  const Place place = walk(path);
  if (place.depth == 0) return {};
  Node* exact = place.depth < place.node->depth ? place.node->parent : place.node;
  while (exact != nullptr && exact->snapshot == nullptr) exact = exact->parent;
  const std::size_t exact_depth = exact == nullptr ? 0 : exact->depth;
  if (Node* longer = exact_depth < place.depth ? nearest_below(place.node) : nullptr; longer != nullptr) {
    auto fork = longer->snapshot->fork();
    if (fork->truncate(place.depth) > exact_depth) {
      touch(longer);
      return {std::move(fork), longer->snapshot};
    }
  }
  if (exact == nullptr) return {};
  touch(exact);
  return {exact->snapshot->fork(), exact->snapshot};
}

std::size_t PrefixCache::next_mark(Path path, std::size_t from) const {
  if (!enabled()) return 0;
  std::size_t kept = 0;  // depth of the last snapshot on the way
  const Node* node = root_.get();
  while (node->depth < path.size()) {
    const auto child = node->children.find(path[node->depth]);
    if (child == node->children.end() || child->second->depth > path.size()) return 0;
    node = child->second.get();
    if (node->snapshot != nullptr) {
      kept = node->depth;
      continue;
    }
    const bool parting = node->children.size() > 1 || node->ending > 0;
    if (node->depth > from && parting && node->passing > 1 &&
        (node->passing - 1) * (node->depth - kept) >= kWorthTokens)
      return node->depth;
  }
  return 0;
}

bool PrefixCache::store(Path path, std::unique_ptr<Sequence> sequence) {
  if (!enabled() || path.empty() || memory_.state_bytes(path.size()) > limit_) return false;
  Node* node = insert(path);
  if (node->snapshot != nullptr) {
    touch(node);
    return false;
  }
  node->snapshot = std::move(sequence);
  ++snapshots_;
  bytes_ = count_bytes();
  touch(node);
  const Pin keep = node->snapshot;  // so that it is not the one that leaves
  while (bytes_ > limit_ || snapshots_ > kMaxSnapshots) {
    if (evict()) continue;
    drop(node);
    return false;
  }
  return true;
}

void PrefixCache::drop(Node* node) {
  node->snapshot.reset();
  --snapshots_;
  prune(node);
  bytes_ = count_bytes();
}

bool PrefixCache::evict() {
  Node* oldest = nullptr;
  std::vector<Node*> rest{root_.get()};
  while (!rest.empty()) {
    Node* node = rest.back();
    rest.pop_back();
    for (const auto& [token, child] : node->children) rest.push_back(child.get());
    if (node->snapshot == nullptr || node->snapshot.use_count() > 1) continue;
    // Of equally old ones the deeper: what is above it is its beginning.
    if (oldest == nullptr || node->used < oldest->used || (node->used == oldest->used && node->depth > oldest->depth))
      oldest = node;
  }
  if (oldest == nullptr) return false;
  drop(oldest);
  return true;
}

std::uint64_t PrefixCache::own_bytes(std::size_t positions, std::size_t shared) const {
  const std::uint64_t all = memory_.state_bytes(positions);
  return all - std::min(all, shared / kernels::kKvPage * memory_.page_bytes);
}

std::uint64_t PrefixCache::count_bytes() const {
  std::uint64_t sum = 0;
  std::vector<std::pair<const Node*, std::size_t>> rest{{root_.get(), 0}};  // with the depth of the snapshot above
  while (!rest.empty()) {
    auto [node, above] = rest.back();
    rest.pop_back();
    if (node->snapshot != nullptr) {
      sum += own_bytes(node->depth, above);
      above = node->depth;
    }
    for (const auto& [token, child] : node->children) rest.emplace_back(child.get(), above);
  }
  return sum;
}

}  // namespace hk::engine
