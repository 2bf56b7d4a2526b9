# Compile settings shared by every target, and hk_library() for one layer.

option(HK_KERNELS_ONLY "Build only the kernels and their tests (cross compilation, emulators)" OFF)

option(HK_FUZZ "Build the fuzz targets, and everything else so that they see which code runs (clang)" OFF)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# Found once, visible in every folder: a static library hands its private libraries on to whoever links it.
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

add_library(hk_options INTERFACE)
# No reassociation or contraction: results are promised bit for bit (see kernels/kernels.h), fused operations are written out.
target_compile_options(hk_options INTERFACE -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -ffp-contract=off
                                            -fno-math-errno)
if(HK_WERROR)
  target_compile_options(hk_options INTERFACE -Werror)
endif()
if(HK_SANITIZE)
  target_compile_options(hk_options INTERFACE -fsanitize=${HK_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(hk_options INTERFACE -fsanitize=${HK_SANITIZE})
endif()
if(HK_FUZZ)
  target_compile_options(hk_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# hk_library(name [DEPENDS libs...]): all .cpp files of the current folder and its sub-folders.
function(hk_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  add_library(${name} STATIC ${sources})
  target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:include/hk>)
  target_link_libraries(${name} PUBLIC ${ARG_DEPENDS} PRIVATE $<BUILD_INTERFACE:hk_options>)
endfunction()
