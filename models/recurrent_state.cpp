// State of a sequence's recurrent layers (see recurrent_state.h).
#include "models/recurrent_state.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "kernels/kernels.h"

namespace hk::models {

namespace {

constexpr std::size_t kKeptPrompts = 2;  // enough to take back a question and to ask it again

std::size_t page_of(std::size_t position) { return position / kernels::kKvPage; }

}  // namespace

RecurrentState::RecurrentState(std::size_t floats) : floats_(floats) {
  if (floats != 0) kept_.reserve(16);  // a context of a million positions keeps that many
}

RecurrentState::RecurrentState(const RecurrentState& other)
    : floats_(other.floats_), current_(other.current_), kept_(other.kept_) {}

std::shared_ptr<RecurrentState::Block> RecurrentState::take_block() {
  if (spare_ != nullptr) return std::move(spare_);
  return std::make_shared<Block>(floats_, "the state of recurrent layers");
}

void RecurrentState::release(std::shared_ptr<Block>& block) {
  if (block != nullptr && block.use_count() == 1 && spare_ == nullptr) spare_ = std::move(block);
  block.reset();
}

void RecurrentState::begin_call(std::size_t position) {
  call_start_ = {position, current_, false};
  in_call_ = true;
}

void RecurrentState::end_call(std::size_t tokens) {
  in_call_ = false;
  if (tokens > 1 && call_start_.position != 0) keep_prompt();
  release(call_start_.block);
}

void RecurrentState::keep_prompt() {
  const auto next = std::ranges::lower_bound(kept_, call_start_.position, {}, &Kept::position);
  if (next != kept_.end() && next->position == call_start_.position) {
    next->prompt = true;
    return;
  }
  kept_.insert(next, {call_start_.position, call_start_.block, true});
  const auto prompts = std::ranges::count_if(kept_, &Kept::prompt);
  if (static_cast<std::size_t>(prompts) <= kKeptPrompts) return;
  const auto oldest = std::ranges::find_if(kept_, &Kept::prompt);
  release(oldest->block);
  kept_.erase(oldest);
}

void RecurrentState::prepare() {
  if (current_ == nullptr) {
    next_ = take_block();
    std::fill_n(next_->data(), floats_, 0.0F);
    read_ = next_->data();
    return;
  }
  read_ = current_->data();
  next_ = current_.use_count() == 1 ? current_ : take_block();
}

void RecurrentState::commit(std::size_t position) {
  std::shared_ptr<Block> before = std::exchange(current_, std::move(next_));
  if (before != current_) release(before);
  if (position % kernels::kKvPage != 0) return;
  kept_.push_back({position, current_, false});
  thin_out(page_of(position));
}

/// Of the pages 2^j to 2^(j+1) back, the one divisible by 2^j stays; it was divisible by less before, so it is there.
void RecurrentState::thin_out(std::size_t newest) {
  std::erase_if(kept_, [&](Kept& kept) {
    const std::size_t page = page_of(kept.position);
    if (kept.prompt || page >= newest) return false;
    if (page % std::bit_floor(newest - page) == 0) return false;
    release(kept.block);
    return true;
  });
}

std::size_t RecurrentState::reachable(std::size_t length, std::size_t now) const {
  if (length >= now) return now;
  std::size_t best = 0;
  for (const Kept& kept : kept_) {
    if (kept.position <= length) best = std::max(best, kept.position);
  }
  if (in_call_ && call_start_.position <= length) best = std::max(best, call_start_.position);
  return best;
}

void RecurrentState::go_back(std::size_t position, std::size_t now) {
  if (position < now) {
    std::shared_ptr<Block> found;
    for (const Kept& kept : kept_) {
      if (kept.position == position) found = kept.block;
    }
    if (in_call_ && call_start_.position == position) found = call_start_.block;
    current_ = position == 0 ? nullptr : found;
  }
  next_.reset();
  std::erase_if(kept_, [&](const Kept& kept) { return kept.position > position; });
}

void RecurrentState::assign(std::span<const std::byte> bytes) {
  kept_.clear();
  current_ = take_block();
  std::memcpy(current_->data(), bytes.data(), bytes.size());
}

std::uint64_t RecurrentState::bytes() const {
  std::vector<const Block*> blocks;
  const auto count = [&](const std::shared_ptr<Block>& block) {
    if (block != nullptr && std::ranges::find(blocks, block.get()) == blocks.end()) blocks.push_back(block.get());
  };
  count(current_);
  count(spare_);
  count(call_start_.block);
  for (const Kept& kept : kept_) count(kept.block);
  return blocks.size() * floats_ * sizeof(float);
}

std::uint64_t RecurrentState::most_bytes(std::size_t floats, std::size_t positions) {
  if (positions == 0) return 0;
  // the present, the spare one, prompts, and kept pages: one for each power of two, and the newest
  const std::size_t pages = page_of(positions);
  const std::size_t blocks = 2 + kKeptPrompts + static_cast<std::size_t>(std::bit_width(pages)) + (pages == 0 ? 0 : 1);
  return static_cast<std::uint64_t>(blocks) * floats * sizeof(float);
}

}  // namespace hk::models
