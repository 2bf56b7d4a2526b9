# Install rules and the CMake package hk::hk.
