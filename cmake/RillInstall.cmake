# Installs the libraries with find_package(rill) and pkg-config support.
include(CMakePackageConfigHelpers)
set(config_dir "${CMAKE_INSTALL_LIBDIR}/cmake/rill")

install(TARGETS rill_core rill_nn rill_optim EXPORT rillTargets FILE_SET HEADERS)
install(EXPORT rillTargets NAMESPACE rill:: DESTINATION "${config_dir}")
configure_package_config_file(cmake/rillConfig.cmake.in "${PROJECT_BINARY_DIR}/rillConfig.cmake"
  INSTALL_DESTINATION "${config_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/rillConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/rillConfig.cmake" "${PROJECT_BINARY_DIR}/rillConfigVersion.cmake"
  cmake/FindOpenBLASLib.cmake DESTINATION "${config_dir}")

configure_file(cmake/rill.pc.in "${PROJECT_BINARY_DIR}/rill.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/rill.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
