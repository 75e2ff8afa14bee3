# Finds OpenBLAS with its C interface and defines OpenBLAS::OpenBLAS. Asks pkg-config first (it knows which of
# Debian's variants is installed) and looks in the usual places otherwise.
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(PC_OpenBLAS QUIET openblas)
endif()
find_path(OpenBLAS_INCLUDE_DIR cblas.h HINTS ${PC_OpenBLAS_INCLUDE_DIRS}
  PATH_SUFFIXES openblas openblas-pthread openblas-openmp openblas-serial)
find_library(OpenBLAS_LIBRARY openblas HINTS ${PC_OpenBLAS_LIBRARY_DIRS}
  PATH_SUFFIXES openblas openblas-pthread openblas-openmp openblas-serial)
mark_as_advanced(OpenBLAS_INCLUDE_DIR OpenBLAS_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OpenBLASLib
  REQUIRED_VARS OpenBLAS_LIBRARY OpenBLAS_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "Install it with: apt-get install libopenblas-dev")

if(OpenBLASLib_FOUND AND NOT TARGET OpenBLAS::OpenBLAS)
  add_library(OpenBLAS::OpenBLAS UNKNOWN IMPORTED)
  set_target_properties(OpenBLAS::OpenBLAS PROPERTIES
    IMPORTED_LOCATION "${OpenBLAS_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${OpenBLAS_INCLUDE_DIR}")
endif()
