# The level sources (kernels/isa/*.cpp), compiled once per ISA level into an object library and added to hk_kernels.
#
# Always optimised, whatever the build type: unoptimised inline functions would be emitted as weak symbols, which the linker
# could merge into baseline code (tests/kernels/level_objects_test.py looks for them).
file(GLOB level_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/isa/*.cpp)

set(HK_KERNEL_LEVELS "all" CACHE STRING "ISA levels to compile besides generic: all, or a list (sanitizer builds save time)")

# FLAGS and DEFINES are the level's; BASE names the level that has all sources but ONLY.
function(hk_kernel_level level)
  cmake_parse_arguments(ARG "" "BASE" "FLAGS;DEFINES;ONLY" ${ARGN})
  if(NOT HK_KERNEL_LEVELS STREQUAL "all" AND NOT level IN_LIST HK_KERNEL_LEVELS AND NOT level STREQUAL "generic")
    return()
  endif()
  set(sources ${level_sources})
  if(ARG_BASE)
    if(NOT TARGET hk_kernels_${ARG_BASE})
      return()
    endif()
    list(TRANSFORM ARG_ONLY PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/isa/ OUTPUT_VARIABLE sources)
    list(APPEND ARG_DEFINES HK_BASE_LEVEL=${ARG_BASE})
  endif()
  # instrumented by a sanitizer, the unrolled tiles take minutes to compile at -O3
  set(optimise -O3)
  if(HK_SANITIZE)
    set(optimise -O1)
    # these two look at every pointer and take five times as long to compile; the address sanitizer sees what a pointer
    # that went too far reads
    if(HK_SANITIZE MATCHES "undefined")
      list(APPEND optimise -fno-sanitize=pointer-overflow,object-size)
    endif()
  endif()
  add_library(hk_kernels_${level} OBJECT ${sources})
  target_include_directories(hk_kernels_${level} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(hk_kernels_${level} PRIVATE hk_options)
  # -Wno-psabi: vector types only cross inlined calls here. Old-style casts convert between compiler and intrinsic vectors.
  # -Wno-maybe-uninitialized: g++ 12 complains about the deliberately undefined registers of its own AVX-512 header.
  target_compile_options(hk_kernels_${level} PRIVATE ${optimise} -fno-exceptions -fno-rtti -fno-threadsafe-statics -Wno-psabi
                                                     -Wno-unknown-warning-option
                                                     $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized> ${ARG_FLAGS})
  target_compile_definitions(hk_kernels_${level} PRIVATE HK_LEVEL=${level} ${ARG_DEFINES})
  target_sources(hk_kernels PRIVATE $<TARGET_OBJECTS:hk_kernels_${level}>)
  target_compile_definitions(hk_kernels PRIVATE HK_HAVE_${level})
endfunction()

hk_kernel_level(generic)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(avx2 -mavx2 -mfma -mf16c -mbmi -mbmi2)
  set(avx512 ${avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512cd -mprefer-vector-width=512)
  hk_kernel_level(avx2 FLAGS ${avx2} DEFINES HK_ISA_AVX2)
  hk_kernel_level(avx2_vnni FLAGS ${avx2} -mavxvnni DEFINES HK_ISA_AVX2 HK_ISA_VNNI)
  hk_kernel_level(avx512 FLAGS ${avx512} DEFINES HK_ISA_AVX512)
  hk_kernel_level(avx512_vnni FLAGS ${avx512} -mavx512vnni DEFINES HK_ISA_AVX512 HK_ISA_VNNI)
  # Ice Lake, Zen 4 and later: lookups in the codebooks of the grid formats are byte permutations
  hk_kernel_level(avx512_vbmi BASE avx512_vnni ONLY table.cpp matmul.cpp matmul_grid.cpp
                  FLAGS ${avx512} -mavx512vnni -mavx512vbmi -mgfni DEFINES HK_ISA_AVX512 HK_ISA_VNNI HK_ISA_VBMI)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  hk_kernel_level(neon DEFINES HK_ISA_NEON)
  hk_kernel_level(neon_dotprod FLAGS -march=armv8.2-a+dotprod DEFINES HK_ISA_NEON HK_ISA_DOTPROD)
endif()
