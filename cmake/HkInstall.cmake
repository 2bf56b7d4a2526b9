# Install rules: hk-run, the static libraries, their headers, and the CMake package hk (target hk::hk).
include(CMakePackageConfigHelpers)

add_library(hk INTERFACE)
target_link_libraries(hk INTERFACE hk_models hk_engine hk_tokenizer hk_kernels hk_base)
add_library(hk::hk ALIAS hk)

install(TARGETS hk-run RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS hk hk_models hk_engine hk_tokenizer hk_kernels hk_base EXPORT hkTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY base kernels tokenizer engine models DESTINATION include/hk FILES_MATCHING PATTERN "*.h"
        PATTERN "isa" EXCLUDE)
install(EXPORT hkTargets NAMESPACE hk:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/hk)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/hkConfig.cmake.in ${PROJECT_BINARY_DIR}/hkConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/hk)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/hkConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/hkConfig.cmake ${PROJECT_BINARY_DIR}/hkConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/hk)
