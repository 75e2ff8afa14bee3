# rill_tests(PACKAGE LIBRARIES...): the doctest program PACKAGE_tests of tests/PACKAGE/*.cpp, linked with what all
# tests share and LIBRARIES.
function(rill_tests package)
  rill_sources(sources ${package}/*.cpp)
  add_executable(${package}_tests ${sources})
  rill_flags(${package}_tests)
  rill_lightly_optimised(${package}_tests)
  target_precompile_headers(${package}_tests PRIVATE <doctest/doctest.h> <rill/core/core.h>)
  target_link_libraries(${package}_tests PRIVATE test_main test_support ${ARGN})
  rill_discover_tests(${package}_tests ${package})
endfunction()

# rill_discover_tests(TARGET LABEL): after each build, makes every case of the doctest program a test of ctest, labelled
# LABEL and, when its name begins so, "gradcheck".
function(rill_discover_tests target label)
  set(list "${CMAKE_CURRENT_BINARY_DIR}/${target}.cmake")
  set(script "${PROJECT_SOURCE_DIR}/cmake/discover_tests.cmake")
  set_property(TARGET ${target} PROPERTY LINK_DEPENDS "${script}")
  add_custom_command(TARGET ${target} POST_BUILD BYPRODUCTS "${list}" VERBATIM
    COMMAND "${CMAKE_COMMAND}" -D "PROGRAM=$<TARGET_FILE:${target}>" -D "LABEL=${label}" -D "LIST=${list}"
            -P "${script}")

  set(include "${CMAKE_CURRENT_BINARY_DIR}/${target}_include.cmake")
  file(CONFIGURE OUTPUT "${include}" @ONLY CONTENT [=[
if(EXISTS [==[@list@]==])
  include([==[@list@]==])
else()
  add_test(@target@_not_built @target@_not_built)
endif()
]=])
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${include}")
  set_property(GLOBAL APPEND PROPERTY RILL_TEST_PROGRAMS "$<TARGET_FILE:${target}>")
endfunction()

# Adds the test that no case of the programs above is missing from ctest's list, and none is there twice.
function(rill_test_discovery)
  get_property(programs GLOBAL PROPERTY RILL_TEST_PROGRAMS)
  add_test(NAME "every doctest case is a test of ctest"
    COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/tests/discovery/check.py" "${CMAKE_CTEST_COMMAND}"
            "${PROJECT_BINARY_DIR}" ${programs})
endfunction()
