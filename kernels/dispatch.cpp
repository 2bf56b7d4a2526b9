// Choice of the ISA level at run time: what is compiled in, what this CPU runs, what HK_KERNELS asks for.
#include <cstdlib>
#include <cstring>

#include "kernels/kernels.h"

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace hk::kernels {

#define HK_DECLARE_LEVEL(level)    \
  namespace level {                \
  extern const KernelTable kTable; \
  }
HK_DECLARE_LEVEL(generic)
HK_DECLARE_LEVEL(avx2)
HK_DECLARE_LEVEL(avx2_vnni)
HK_DECLARE_LEVEL(avx512)
HK_DECLARE_LEVEL(avx512_vnni)
HK_DECLARE_LEVEL(avx512_vbmi)
HK_DECLARE_LEVEL(neon)
HK_DECLARE_LEVEL(neon_dotprod)
#undef HK_DECLARE_LEVEL

namespace {

// A build may leave out levels (HK_KERNEL_LEVELS), and with them the users of these checks.
#if defined(__x86_64__)
// The compiler's own CPU check also asks the operating system whether it saves the wide registers.
[[maybe_unused]] bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}
[[maybe_unused]] bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd");
}
/// CPUID leaf 7, sub-leaf 1, EAX bit 4; asked directly because older compilers have no name for it.
[[maybe_unused]] bool has_avx_vnni() {
  unsigned a = 7, b = 0, c = 1, d = 0;
  __asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  return has_avx2() && (a >> 4 & 1U) != 0;
}
[[maybe_unused]] bool has_avx512_vnni() { return has_avx512() && __builtin_cpu_supports("avx512vnni"); }
[[maybe_unused]] bool has_avx512_vbmi() {
  return has_avx512_vnni() && __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("gfni");
}
#endif
[[maybe_unused]] bool always() { return true; }
#if defined(__aarch64__)
[[maybe_unused]] bool has_dotprod() {
#if defined(__linux__)
  constexpr unsigned long kHwcapDotProduct = 1UL << 20;  // HWCAP_ASIMDDP
  return (getauxval(AT_HWCAP) & kHwcapDotProduct) != 0;
#else
  return false;
#endif
}
#endif

struct Level {
  const KernelTable* table;
  std::string_view name;
  bool (*usable)();
};

/// Best first.
constexpr Level kLevels[] = {
#if defined(HK_HAVE_avx512_vbmi)
    {&avx512_vbmi::kTable, "avx512_vbmi", has_avx512_vbmi},
#endif
#if defined(HK_HAVE_avx512_vnni)
    {&avx512_vnni::kTable, "avx512_vnni", has_avx512_vnni},
#endif
#if defined(HK_HAVE_avx512)
    {&avx512::kTable, "avx512", has_avx512},
#endif
#if defined(HK_HAVE_avx2_vnni)
    {&avx2_vnni::kTable, "avx2_vnni", has_avx_vnni},
#endif
#if defined(HK_HAVE_avx2)
    {&avx2::kTable, "avx2", has_avx2},
#endif
#if defined(HK_HAVE_neon_dotprod)
    {&neon_dotprod::kTable, "neon_dotprod", has_dotprod},
#endif
#if defined(HK_HAVE_neon)
    {&neon::kTable, "neon", always},
#endif
    {&generic::kTable, "generic", always},
};
constexpr std::size_t kLevelCount = sizeof kLevels / sizeof kLevels[0];

struct Registry {
  std::string_view names[kLevelCount];
  const KernelTable* usable[kLevelCount];
  std::size_t usable_count = 0;
  Registry() {
    for (std::size_t i = 0; i < kLevelCount; ++i) {
      names[i] = kLevels[i].name;
      if (kLevels[i].usable()) usable[usable_count++] = kLevels[i].table;
    }
  }
};

const Registry& registry() {
  static const Registry instance;
  return instance;
}

}  // namespace

std::span<const KernelTable* const> usable_levels() { return {registry().usable, registry().usable_count}; }

std::span<const std::string_view> compiled_levels() { return registry().names; }

const KernelTable* select_level(std::string_view forced, const char** why) {
  const auto usable = usable_levels();
  if (forced.empty()) return usable.front();
  for (const KernelTable* table : usable) {
    if (table->level == forced) return table;
  }
  bool known = false;
  for (const std::string_view name : compiled_levels()) known = known || name == forced;
  if (why != nullptr) {
    *why =
        known ? "this CPU cannot run that kernel level" : "no kernel level of that name is compiled into this program";
  }
  return nullptr;
}

const KernelTable& kernels() {
  static const KernelTable* const chosen = [] {
    const char* forced = std::getenv("HK_KERNELS");
    const KernelTable* table = select_level(forced == nullptr ? "" : forced, nullptr);
    return table != nullptr ? table : usable_levels().front();
  }();
  return *chosen;
}

ActivationFormat activation_of(StorageType type) {
  const Format* format = find_format(type);
  return format == nullptr ? ActivationFormat::kNone : format->activation;
}

}  // namespace hk::kernels
