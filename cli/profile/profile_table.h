// A profile as a table: what each kind of stage took, what it had to do, and how near to the machine's limit that is.
//
// Layer: cli.
#pragma once

#include <string>

#include "cli/profile/profile_options.h"

namespace hk::cli {

/// Lines with their ends; the longest stage first.
std::string profile_table(const ProfiledPart& part);

}  // namespace hk::cli
