# Writes LIST, a script for ctest with one test for each case of the doctest program PROGRAM. doctest's own script is
# not used: a name with a semicolon, a bracket or a backslash breaks it, and a name that matches no case passes.
execute_process(COMMAND "${PROGRAM}" --list-test-cases
  OUTPUT_VARIABLE output RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} --list-test-cases ended with ${result}:\n${output}")
endif()

set(script "")
# The lines are cut off one by one: a CMake list would split names at semicolons.
while(NOT output STREQUAL "")
  string(FIND "${output}" "\n" end)
  string(SUBSTRING "${output}" 0 ${end} name)
  if(end EQUAL -1)
    set(output "")
  else()
    math(EXPR end "${end} + 1")
    string(SUBSTRING "${output}" ${end} -1 output)
  endif()
  if(name STREQUAL "" OR name MATCHES "^=+$" OR name MATCHES "^\\[doctest\\] ")
    continue()
  endif()

  set(labels "${LABEL}")
  if(name MATCHES "^gradcheck" AND NOT LABEL STREQUAL "gradcheck")
    set(labels "${LABEL};gradcheck")
  endif()
  # doctest splits its filters at commas that no backslash guards.
  string(REPLACE "\\" "\\\\" filter "${name}")
  string(REPLACE "," "\\," filter "${filter}")
  string(APPEND script
    "add_test([==[${name}]==] [==[${PROGRAM}]==] [==[--test-case=${filter}]==] --case-sensitive=true)\n"
    "set_tests_properties([==[${name}]==] PROPERTIES LABELS [==[${labels}]==]\n"
    "  TIMEOUT 600 FAIL_REGULAR_EXPRESSION [==[test cases: +0 ]==] SKIP_REGULAR_EXPRESSION [==[(^|\n)skipped: ]==])\n")
endwhile()
file(WRITE "${LIST}" "${script}")
