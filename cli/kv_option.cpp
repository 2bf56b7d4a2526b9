// The option --kv (see kv_option.h).
#include "cli/kv_option.h"

#include <fmt/format.h>

#include <iterator>

#include "base/error.h"

namespace hk::cli {
namespace {

/// "a, b, c <last> d".
std::string kv_names(std::string_view last) {
  std::string names;
  for (const kernels::KvType& type : kernels::kKvTypes) {
    if (&type != std::begin(kernels::kKvTypes))
      names += &type + 1 == std::end(kernels::kKvTypes) ? fmt::format(" {} ", last) : ", ";
    names += kv_type_name(type);
  }
  return names;
}

}  // namespace

kernels::KvType parse_kv(std::string_view name) {
  if (const auto type = kernels::find_kv_type(name)) return *type;
  throw Error(fmt::format("--kv: '{}' is no cache type; there are {}", name, kv_names("and")), ErrorKind::kUsage);
}

std::string kv_help() { return fmt::format("Type of the key/value cache: {}", kv_names("or")); }

}  // namespace hk::cli
