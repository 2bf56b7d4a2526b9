// The matrix kernels of one ISA level by weight type.
#include "kernels/isa/matmul.h"

#include "kernels/isa/level.h"

namespace hk::kernels::HK_LEVEL {

MatmulFn matmul(StorageType type) {
  switch (type) {
    case StorageType::kF32:
      return matmul_float<F32>;
    case StorageType::kF16:
      return matmul_float<F16>;
    case StorageType::kBF16:
      return matmul_float<BF16>;
    case StorageType::kQ4_0:
      return matmul_block<Q4_0>;
    case StorageType::kQ8_0:
      return matmul_block<Q8_0>;
    case StorageType::kQ4_K:
      return matmul_super<Q4_K>;
#define HK_DECODED(type)  \
  case StorageType::type: \
    return matmul_decoded<StorageType::type>;
      HK_DECODED(kQ4_1)
      HK_DECODED(kQ5_0) HK_DECODED(kQ5_1) HK_DECODED(kIQ4_NL) HK_DECODED(kMXFP4) HK_DECODED(kNVFP4) HK_DECODED(kQ2_K)
          HK_DECODED(kQ3_K) HK_DECODED(kQ5_K) HK_DECODED(kQ6_K) HK_DECODED(kIQ1_S) HK_DECODED(kIQ1_M)
              HK_DECODED(kIQ2_XXS) HK_DECODED(kIQ2_XS) HK_DECODED(kIQ2_S) HK_DECODED(kIQ3_XXS) HK_DECODED(kIQ3_S)
                  HK_DECODED(kIQ4_XS) HK_DECODED(kTQ1_0) HK_DECODED(kTQ2_0)
#undef HK_DECODED
                      default : return nullptr;
  }
}

}  // namespace hk::kernels::HK_LEVEL
