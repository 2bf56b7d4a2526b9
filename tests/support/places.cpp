// The paths that CMake knows (tests/CMakeLists.txt).
#include "tests/support/places.h"

namespace hk::test {

const char* source_root() { return HK_SOURCE_DIR; }
const char* program() { return HK_RUN; }

}  // namespace hk::test
