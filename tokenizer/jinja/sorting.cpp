// Merge sort of indices, from the bottom up.
#include "tokenizer/jinja/sorting.h"

#include <algorithm>
#include <numeric>

namespace hk::tokenizer::jinja {

std::vector<std::size_t> sorted_order(std::size_t count, const std::function<bool(std::size_t, std::size_t)>& before) {
  std::vector<std::size_t> order(count), merged(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t width = 1; width < count; width *= 2) {
    for (std::size_t begin = 0; begin < count; begin += 2 * width) {
      const std::size_t middle = std::min(begin + width, count), end = std::min(begin + 2 * width, count);
      std::size_t left = begin, right = middle;
      for (std::size_t to = begin; to < end; ++to) {
        // The right one only goes first when it is really smaller: that keeps equal items in order.
        const bool take_right = left == middle || (right < end && before(order[right], order[left]));
        merged[to] = order[take_right ? right++ : left++];
      }
    }
    order.swap(merged);
  }
  return order;
}

}  // namespace hk::tokenizer::jinja
