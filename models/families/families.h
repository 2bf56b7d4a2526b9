// The families this engine knows, by general.architecture. A family is one file that fills Builder::spec.
//
// Layer: models. To add one: write families/<name>.cpp, declare it here, add its row to families.cpp.
#pragma once

#include <span>
#include <string_view>

#include "models/families/builder.h"

namespace hk::models {

struct Family {
  std::string_view architecture;
  void (*describe)(Builder& builder);
};

std::span<const Family> families();
/// Null when the architecture is unknown.
const Family* find_family(std::string_view architecture);

void describe_llama(Builder& builder);

}  // namespace hk::models
