// Comparing files (see output_check.h).
#include "cli/output_check.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "engine/container/mapped_file.h"

namespace hk::cli {
namespace {

bool look(const std::string& path, int standard, struct stat& status) {
  return (path == "-" ? ::fstat(standard, &status) : ::stat(path.c_str(), &status)) == 0;
}

}  // namespace

void refuse_inputs(const std::string& out, const std::vector<std::string>& inputs) {
  struct stat target {
  }, input{};
  if (!look(out, STDOUT_FILENO, target) || !S_ISREG(target.st_mode)) return;
  for (const auto& path : inputs)
    if (look(path, STDIN_FILENO, input) && input.st_dev == target.st_dev && input.st_ino == target.st_ino)
      throw Error(fmt::format("{}: is read from and cannot be the file that is written", path == "-" ? out : path),
                  ErrorKind::kUsage);
}

void refuse_inputs(const std::string& out, engine::ModelReader& model) {
  std::vector<std::string> inputs = {model.path()};
  for (const engine::MappedFile* file : model.mapped_files()) inputs.push_back(file->path());
  refuse_inputs(out, inputs);
}

}  // namespace hk::cli
