// Matrix kernels of the grid formats for one ISA level.
#include "kernels/isa/level.h"
#include "kernels/isa/matmul_super.h"
#include "kernels/isa/unpack_grid.h"
#include "kernels/isa/unpack_grid_vbmi.h"

namespace hk::kernels {
namespace {

#if !defined(HK_ISA_VBMI)
using IQ2_XXSStream = IQ2_XXS;
using IQ2_XSStream = IQ2_XS;
using IQ2_SStream = IQ2_S;
using IQ3_XXSStream = IQ3_XXS;
using IQ3_SStream = IQ3_S;
#endif

}  // namespace
}  // namespace hk::kernels

namespace hk::kernels::HK_LEVEL {

MatmulFn matmul_grid_format(StorageType type) {
  switch (type) {
    case StorageType::kIQ1_S:
      return matmul_super<IQ1_S>;
    case StorageType::kIQ1_M:
      return matmul_super<IQ1_M>;
    case StorageType::kIQ2_XXS:
      return matmul_super<IQ2_XXS, IQ2_XXSStream>;
    case StorageType::kIQ2_XS:
      return matmul_super<IQ2_XS, IQ2_XSStream, kFewStreamedA>;
    case StorageType::kIQ2_S:
      return matmul_super<IQ2_S, IQ2_SStream, kFewStreamedA>;
    case StorageType::kIQ3_XXS:
      return matmul_super<IQ3_XXS, IQ3_XXSStream>;
    case StorageType::kIQ3_S:
      return matmul_super<IQ3_S, IQ3_SStream>;
    default:
      return nullptr;
  }
}

}  // namespace hk::kernels::HK_LEVEL
