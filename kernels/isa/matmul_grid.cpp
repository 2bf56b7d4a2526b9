// Matrix kernels of the grid formats for one ISA level.
#include "kernels/isa/level.h"
#include "kernels/isa/matmul_super.h"
#include "kernels/isa/unpack_grid.h"

namespace hk::kernels::HK_LEVEL {

MatmulFn matmul_grid_format(StorageType type) {
  switch (type) {
    case StorageType::kIQ1_S:
      return matmul_super<IQ1_S>;
    case StorageType::kIQ1_M:
      return matmul_super<IQ1_M>;
    case StorageType::kIQ2_XXS:
      return matmul_super<IQ2_XXS>;
    case StorageType::kIQ2_XS:
      return matmul_super<IQ2_XS>;
    case StorageType::kIQ2_S:
      return matmul_super<IQ2_S>;
    case StorageType::kIQ3_XXS:
      return matmul_super<IQ3_XXS>;
    case StorageType::kIQ3_S:
      return matmul_super<IQ3_S>;
    default:
      return nullptr;
  }
}

}  // namespace hk::kernels::HK_LEVEL
