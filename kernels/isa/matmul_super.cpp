// Matrix kernels of the K, iq4_xs and ternary formats for one ISA level.
#include "kernels/isa/matmul_super.h"

#include "kernels/isa/level.h"

namespace hk::kernels::HK_LEVEL {

MatmulFn matmul_super_format(StorageType type) {
  switch (type) {
    case StorageType::kQ2_K:
      return matmul_super<Q2_K, Q2_KStream, kFewStreamedA>;
    case StorageType::kQ3_K:
      return matmul_super<Q3_K, Q3_KStream>;
    case StorageType::kQ4_K:
      return matmul_super<Q4_K>;
    case StorageType::kQ5_K:
      return matmul_super<Q5_K>;
    case StorageType::kQ6_K:
      return matmul_super<Q6_K>;
    case StorageType::kIQ4_XS:
      return matmul_super<IQ4_XS, IQ4_XS, kFewStreamedA>;
    case StorageType::kTQ1_0:
      return matmul_super<TQ1_0, TQ1_0, kFewStreamedA>;
    case StorageType::kTQ2_0:
      return matmul_super<TQ2_0, TQ2_0, kFewStreamedA>;
    default:
      return nullptr;
  }
}

}  // namespace hk::kernels::HK_LEVEL
