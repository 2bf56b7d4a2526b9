// Where the tests find the source tree and the program, known to one source file: the others then compile to the same
// object wherever the tree lies, which a compiler cache can use.
#pragma once

namespace hk::test {

/// Root of the source tree.
const char* source_root();
/// Path of the program hk-run of this build.
const char* program();

}  // namespace hk::test
