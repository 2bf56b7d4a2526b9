// What a model file looks like to the family it names (see family_remarks.h).
#include "cli/family_remarks.h"

#include <fmt/format.h>

#include "base/error.h"
#include "engine/runtime/thread_pool.h"
#include "models/open.h"

namespace hk::cli {

std::vector<std::string> family_remarks(const std::shared_ptr<engine::ModelReader>& reader) {
  engine::ThreadPool pool(1);
  try {
    return models::open(reader, pool)->info().remarks;
  } catch (const Error& error) {
    return {fmt::format("cannot be run: {}", error.what())};
  }
}

}  // namespace hk::cli
