# Installs the libraries, with what find_package(rill) and pkg-config need. The installed folder may be moved.
include(CMakePackageConfigHelpers)
set(config_dir "${CMAKE_INSTALL_LIBDIR}/cmake/rill")

install(TARGETS rill rill_core rill_nn rill_optim EXPORT rillTargets FILE_SET HEADERS)
install(EXPORT rillTargets NAMESPACE rill:: DESTINATION "${config_dir}")
configure_package_config_file(cmake/rillConfig.cmake.in "${PROJECT_BINARY_DIR}/rillConfig.cmake"
  INSTALL_DESTINATION "${config_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/rillConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/rillConfig.cmake" "${PROJECT_BINARY_DIR}/rillConfigVersion.cmake"
  cmake/FindOpenBLASLib.cmake DESTINATION "${config_dir}")

# What a program must link beside rill: nothing when rill is shared, rill's own dependencies when it is static.
set(pc_requires "fmt")
set(pc_libs "")
if(NOT BUILD_SHARED_LIBS)
  string(APPEND pc_libs " ${CMAKE_THREAD_LIBS_INIT}")
  if(PC_OpenBLAS_FOUND)
    string(APPEND pc_requires ", openblas")
  else()
    cmake_path(GET OpenBLAS_LIBRARY PARENT_PATH openblas_dir)
    string(APPEND pc_libs " -L${openblas_dir} -lopenblas")
  endif()
endif()
file(RELATIVE_PATH pc_prefix "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
configure_file(cmake/rill.pc.in "${PROJECT_BINARY_DIR}/rill.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/rill.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
