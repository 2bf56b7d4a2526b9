// The families this engine knows (see families.h).
#include "models/families/families.h"

namespace hk::models {

namespace {

constexpr Family kFamilies[] = {
    {"llama", describe_llama},
};

}  // namespace

std::span<const Family> families() { return kFamilies; }

const Family* find_family(std::string_view architecture) {
  for (const Family& family : kFamilies) {
    if (family.architecture == architecture) return &family;
  }
  return nullptr;
}

}  // namespace hk::models
