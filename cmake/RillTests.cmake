# rill_tests(PACKAGE LIBRARIES...): the doctest program PACKAGE_tests of tests/PACKAGE/*.cpp, each of its cases a test
# of ctest, labelled with the package and, when its name begins so, with "gradcheck".
function(rill_tests package)
  set(target ${package}_tests)
  rill_sources(sources ${package}/*.cpp)
  add_executable(${target} ${sources})
  rill_flags(${target})
  target_link_libraries(${target} PRIVATE test_support ${ARGN})

  set(list "${CMAKE_CURRENT_BINARY_DIR}/${target}.cmake")
  set(script "${PROJECT_SOURCE_DIR}/cmake/discover_tests.cmake")
  add_custom_command(OUTPUT "${list}" DEPENDS ${target} "${script}" VERBATIM
    COMMAND "${CMAKE_COMMAND}" -D "PROGRAM=$<TARGET_FILE:${target}>" -D "PACKAGE=${package}" -D "LIST=${list}"
            -P "${script}")
  add_custom_target(${target}_list ALL DEPENDS "${list}")

  file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/${target}_include.cmake"
    "if(EXISTS [==[${list}]==])\n  include([==[${list}]==])\nelse()\n"
    "  add_test(${target}_not_built ${target}_not_built)\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES
    "${CMAKE_CURRENT_BINARY_DIR}/${target}_include.cmake")
endfunction()
