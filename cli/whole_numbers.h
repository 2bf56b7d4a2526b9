// Whole numbers of the command line are what they look like.
//
// Layer: cli. The parser by itself reads 010 as eight, takes -1 for the largest number where none can be below zero,
// and cuts what is too large to the largest there is.
#pragma once

namespace CLI {
class App;
}

namespace hk::cli {

/// Lets every option of a whole number, also of subcommands, take decimal digits within its range only.
void check_whole_numbers(CLI::App& app);

}  // namespace hk::cli
