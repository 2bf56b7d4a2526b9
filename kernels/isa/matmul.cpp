// The matrix kernel of one ISA level for a weight type.
#include "kernels/isa/level.h"

namespace hk::kernels::HK_LEVEL {

MatmulFn matmul(StorageType type) {
  if (const MatmulFn found = matmul_float_format(type)) return found;
  if (const MatmulFn found = matmul_block_format(type)) return found;
  if (const MatmulFn found = matmul_super_format(type)) return found;
  return matmul_grid_format(type);
}

}  // namespace hk::kernels::HK_LEVEL
