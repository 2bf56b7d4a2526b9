// A stable sort that bears a comparison which throws or contradicts itself.
//
// Layer: tokenizer/jinja. Comparisons come from templates: they may fail half-way, and NaN has no order. The standard
// library promises nothing for such; a plain merge sort of indices does.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace hk::tokenizer::jinja {

/// The order in which 0 .. count-1 are sorted by `before(i, j)`.
std::vector<std::size_t> sorted_order(std::size_t count, const std::function<bool(std::size_t, std::size_t)>& before);

}  // namespace hk::tokenizer::jinja
