// hk::Error: a failure told as one sentence for a person, with the exit code it leads to.
//
// The ground under every other folder: standard library only. A sentence names what was being done, the file, tensor,
// key or line, what was found and what would have been right. Input never reaches an assertion; it ends up here.
#pragma once

#include <stdexcept>
#include <string>

namespace hk {

/// What kind of failure it was; the value is the exit code of `hk-run`.
enum class ErrorKind : int {
  kInput = 1,          ///< bad file, bad model, bad data
  kUsage = 2,          ///< bad command line
  kResource = 3,       ///< out of memory or disk
  kInterrupted = 130,  ///< stopped by the user
};

class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& sentence, ErrorKind kind = ErrorKind::kInput)
      : std::runtime_error(sentence), kind_(kind) {}

  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

}  // namespace hk
