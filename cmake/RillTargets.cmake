# The functions that the CMakeLists.txt of the rooms are written with.

# Makes include/rill/NAME in the build tree a link to each source room or file, so that one spelling,
# #include <rill/core/tensor.h>, holds in the tree and when installed.
function(rill_link_includes)
  file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/include/rill")
  foreach(name IN LISTS ARGN)
    file(CREATE_LINK "${PROJECT_SOURCE_DIR}/${name}" "${PROJECT_BINARY_DIR}/include/rill/${name}" SYMBOLIC)
  endforeach()
endfunction()

# GCC's tuning for some processors multiplies and adds in two steps where one sum is all that a loop has. Then a tile
# of one vector would give other bits than the others, and a product other ones when it is cut otherwise.
# Clang takes the option with a warning and needs none.
include(CheckCXXCompilerFlag)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  check_cxx_compiler_flag(--param=avoid-fma-max-bits=0 RILL_HAS_AVOID_FMA_PARAM)
endif()

# The flags of everything in this tree. None of them reaches users.
function(rill_flags target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE
    -fno-math-errno -fno-trapping-math -fopenmp-simd -Wall -Wextra -Wpedantic -Wshadow
    $<$<BOOL:${RILL_HAS_AVOID_FMA_PARAM}>:--param=avoid-fma-max-bits=0> $<$<BOOL:${RILL_WERROR}>:-Werror>)
  # core/kernels/simd.h reads these; the kernels carry their instruction set themselves, nothing else is changed.
  if(RILL_SIMD MATCHES "^(baseline|v3|v4)$")
    string(TOUPPER "RILL_SIMD_${RILL_SIMD}" level)
    target_compile_definitions(${target} PRIVATE ${level}=1)
  elseif(RILL_SIMD STREQUAL "native")
    target_compile_options(${target} PRIVATE -march=native)
    target_compile_definitions(${target} PRIVATE RILL_SIMD_NATIVE=1)
  elseif(NOT RILL_SIMD STREQUAL "dispatch")
    message(FATAL_ERROR "RILL_SIMD is '${RILL_SIMD}'; use dispatch, baseline, v3, v4 or native")
  endif()
endfunction()

# For what only calls the libraries: optimising it costs a third of its compile time, under sanitizers most of it, and
# gains nothing.
function(rill_lightly_optimised target)
  target_compile_options(${target} PRIVATE $<IF:$<CONFIG:Debug>,-O0,-O1>)
endfunction()

# The .cpp files of the given patterns, in all folders below, found again at each build.
function(rill_sources out)
  file(GLOB_RECURSE found CONFIGURE_DEPENDS RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}" ${ARGN})
  if(NOT found)
    set(empty "${CMAKE_CURRENT_BINARY_DIR}/empty_${out}.cpp")
    if(NOT EXISTS "${empty}")
      file(WRITE "${empty}" "namespace {}\n")
    endif()
    set(found "${empty}")
  endif()
  set(${out} "${found}" PARENT_SCOPE)
endfunction()

# rill_public_headers(TARGET NAMES...): the headers of TARGET, below include/rill, that are installed, documented and
# compiled alone by a check.
function(rill_public_headers target)
  list(TRANSFORM ARGN PREPEND "${PROJECT_BINARY_DIR}/include/rill/")
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS "${PROJECT_BINARY_DIR}/include" FILES ${ARGN})
  set_target_properties(${target} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
endfunction()

# rill_library(ROOM HEADERS NAMES...): the library rill::ROOM of the sources of a room. The headers named are public;
# all others are internal: not installed, not documented, not for other libraries. tools/layers.py reads the list.
function(rill_library room)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" HEADERS)
  set(target rill_${room})
  rill_sources(sources *.cpp)
  add_library(${target} ${sources})
  add_library(rill::${room} ALIAS ${target})
  rill_flags(${target})
  set_target_properties(${target} PROPERTIES
    EXPORT_NAME ${room} VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
    INSTALL_RPATH "$ORIGIN" POSITION_INDEPENDENT_CODE ON
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  # Nobody replaces a function of the library from outside, so its own calls may be direct and inlined.
  target_compile_options(${target} PRIVATE -fno-semantic-interposition)
  list(TRANSFORM arg_HEADERS PREPEND "${room}/")
  rill_public_headers(${target} ${arg_HEADERS})
endfunction()

# rill_program(NAME SOURCES...): one program of the examples or tools.
function(rill_program name)
  add_executable(${name} ${ARGN})
  rill_flags(${name})
  rill_lightly_optimised(${name})
  target_link_libraries(${name} PRIVATE rill::rill)
endfunction()

# rill_program_with_library(NAME LIBRARY FOLDER HEADERS...): all sources of FOLDER but main.cpp as a static LIBRARY,
# which the tests link too, and the program NAME. Its headers are spelled <FOLDER/x.h>; HEADERS are parsed once for all
# its sources.
function(rill_program_with_library name library folder)
  rill_sources(sources ${folder}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
  if(NOT sources)
    file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/empty_${library}.cpp" "namespace {}\n")
    set(sources "${CMAKE_CURRENT_BINARY_DIR}/empty_${library}.cpp")
  endif()
  add_library(${library} STATIC ${sources})
  rill_flags(${library})
  target_include_directories(${library} PUBLIC "${CMAKE_CURRENT_SOURCE_DIR}")
  target_link_libraries(${library} PUBLIC rill::rill)
  target_precompile_headers(${library} PRIVATE <rill/core/core.h> ${ARGN})
  if(EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/${folder}/main.cpp")
    rill_program(${name} ${folder}/main.cpp)
    target_link_libraries(${name} PRIVATE ${library})
  endif()
endfunction()
