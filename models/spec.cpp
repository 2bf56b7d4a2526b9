// Parts of a spec that are more than data (see spec.h).
#include "models/spec.h"

namespace hk::models {

MatrixBank MatrixBank::slice(std::size_t from, std::size_t n) const {
  MatrixBank part = *this;
  // Experts stay a whole tensor apart, so each part needs an entry of its own.
  part.separate.clear();
  part.separate.reserve(count);
  for (std::size_t i = 0; i < count; ++i) part.separate.push_back((*this)[i].slice(from, n));
  part.first = part.separate.empty() ? Matrix{} : part.separate.front();
  part.scales = nullptr;
  return part;
}

}  // namespace hk::models
