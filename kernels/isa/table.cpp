// The kernel table of one ISA level.
#include "kernels/isa/level.h"

#define HK_STRING2(x) #x
#define HK_STRING(x) HK_STRING2(x)

namespace hk::kernels::HK_LEVEL {

// constant-initialized: nothing of a level runs before the dispatcher has chosen it
constinit const KernelTable kTable = {
    .level = HK_STRING(HK_LEVEL),
    .quantize_row = quantize_row,
    .matmul = matmul,
    .rms_norm = rms_norm,
    .layer_norm = layer_norm,
    .add = add,
    .add_scaled = add_scaled,
    .scale = scale,
    .silu_mul = silu_mul,
    .gelu_mul = gelu_mul,
    .relu2_mul = relu2_mul,
    .rope_adjacent = rope_adjacent,
    .rope_halves = rope_halves,
    .softmax = softmax,
    .store_key = store_key,
    .store_value = store_value,
    .attend_page = attend_page,
    .attend_merge = attend_merge,
    .probe = {.int8_dot = probe_int8_dot, .f32_fma = probe_f32_fma, .bf16_dot = probe_bf16_dot, .read = probe_read},
};

}  // namespace hk::kernels::HK_LEVEL
