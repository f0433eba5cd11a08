# The functions that the folders' CMakeLists.txt call:
#   keel_add_plugin(NAME SOURCES file... [LIBS target...] [DEVICE_FILES path...])  one plugin: lib/keel/plugins/keel-NAME.so.
#     Where none of DEVICE_FILES exists, tools/demo does not build it
#   keel_skip(TEXT)  says what is not built and why; tools/demo repeats it
#   keel_add_rules(FILE.rules...)                           files of rules: lib/keel/plugins/keel-FILE.rules
#   keel_add_test(NAME [TOGETHER] SOURCES file... [LIBS target...] [HEADERS header...] [THREADED file...])  one GoogleTest program, run by ctest
#   keel_run_test(TEST PROGRAM [argument...])               the same program once more
#   keel_embed(TARGET VARIABLE file...)                     text files as data of a library
#   keel_flatbuffer(TARGET schema.fbs)                      the schema's generated header
#   keel_compile_together(TARGET COUNT)                     up to COUNT source files of a folder are one translation unit
set(KEEL_PLUGIN_OUTPUT "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/keel/plugins")
set(KEEL_PLUGIN_INSTALL "${CMAKE_INSTALL_LIBDIR}/keel/plugins") # where libkeel looks for them

add_custom_target(keel_plugins) # all of them
add_custom_target(keel_plugins_here) # without those whose device this machine cannot have
add_dependencies(keel_plugins keel_plugins_here)
add_custom_target(keel_tests) # all C++ tests, and the plugins that they load
add_dependencies(keel_tests keel_plugins)

function(keel_skip text)
  message(STATUS "${text}")
  set_property(GLOBAL APPEND PROPERTY KEEL_NOT_HERE "${text}")
endfunction()

# A plugin links no library of Keel and exports keel_plugin_v0 only; it includes only abi/ and headers of the SDK.
function(keel_add_plugin name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBS;DEVICE_FILES")
  if(NOT arg_SOURCES OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "keel_add_plugin(${name}): write keel_add_plugin(NAME SOURCES file... [LIBS target...] [DEVICE_FILES path...])")
  endif()
  add_library(keel-${name} MODULE ${arg_SOURCES})
  target_link_libraries(keel-${name} PRIVATE keel::abi ${arg_LIBS})
  if(NOT arg_SOURCES MATCHES "[.]c(;|$)")
    target_precompile_headers(keel-${name} PRIVATE <algorithm> <array> <atomic> <bit> <cmath> <cstring> <functional> <limits>
      <map> <memory> <mutex> <optional> <span> <string> <string_view> <unordered_map> <vector>)
  endif()
  target_link_options(keel-${name} PRIVATE
    "-Wl,--version-script=${CMAKE_SOURCE_DIR}/tools/cmake/plugin.map" -Wl,--exclude-libs,ALL)
  if(NOT (KEEL_SANITIZE AND CMAKE_CXX_COMPILER_ID MATCHES Clang)) # there the program contains the runtime
    target_link_options(keel-${name} PRIVATE -Wl,--no-undefined)
  endif()
  set_target_properties(keel-${name} PROPERTIES PREFIX "" INSTALL_RPATH "$ORIGIN"
    LIBRARY_OUTPUT_DIRECTORY "${KEEL_PLUGIN_OUTPUT}")
  set(found "")
  foreach(path IN LISTS arg_DEVICE_FILES)
    if(EXISTS "${path}")
      list(APPEND found "${path}")
    endif()
  endforeach()
  if(found OR NOT arg_DEVICE_FILES)
    add_dependencies(keel_plugins_here keel-${name})
  else()
    add_dependencies(keel_plugins keel-${name})
    list(JOIN arg_DEVICE_FILES " or " files)
    set_property(GLOBAL APPEND PROPERTY KEEL_NOT_HERE "keel-${name} is not built by tools/demo: no device for it is on this machine (no ${files})")
  endif()
  install(TARGETS keel-${name} LIBRARY DESTINATION "${KEEL_PLUGIN_INSTALL}" COMPONENT plugins)
endfunction()

# Passes that are text; they are plugins as they are.
function(keel_add_rules)
  foreach(file IN LISTS ARGN)
    set(copy "${KEEL_PLUGIN_OUTPUT}/keel-${file}")
    add_custom_command(OUTPUT "${copy}" DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${file}" VERBATIM
      COMMAND "${CMAKE_COMMAND}" -E copy "${CMAKE_CURRENT_SOURCE_DIR}/${file}" "${copy}")
    add_custom_target(keel-${file} ALL DEPENDS "${copy}")
    add_dependencies(keel_plugins_here keel-${file})
    install(FILES "${copy}" DESTINATION "${KEEL_PLUGIN_INSTALL}" COMPONENT plugins)
  endforeach()
endfunction()

# Paths for tests: KEEL_TEST_PLUGINS (built plugins), KEEL_TEST_DATA (tests/data), KEEL_TEST_BUILD (the build folder, with
# bin/ and lib/). ctest runs a program as a whole, because starting a process takes longer than most tests; each test's result
# is in tests/results/NAME.xml, which tools/count_tests.py counts. The files of a folder are one program; HEADERS are
# precompiled for it. With TOGETHER they are compiled in groups of seven, each in a namespace of its own (so they
# may contain anonymous namespaces only): half of a test's compile time goes into code that it shares with its neighbours.
# THREADED names the files whose tests share data between threads (a folder may name more than NAME has): a build with
# ThreadSanitizer contains no others.
function(keel_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TOGETHER" "" "SOURCES;LIBS;HEADERS;THREADED")
  if(NOT arg_SOURCES OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "keel_add_test(${name}): write keel_add_test(NAME [TOGETHER] SOURCES file... [LIBS target...] [HEADERS header...] [THREADED file...])")
  endif()
  set(wanted ${arg_SOURCES})
  list(FILTER wanted INCLUDE REGEX "_test[.]cc$")
  if(KEEL_SANITIZE STREQUAL "thread")
    foreach(file IN LISTS wanted arg_THREADED)
      if(NOT EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/${file}")
        message(FATAL_ERROR "keel_add_test(${name}): THREADED names ${file}, which does not exist")
      elseif(NOT file IN_LIST arg_THREADED)
        list(REMOVE_ITEM wanted ${file})
      endif()
    endforeach()
  endif()
  if(wanted)
    list(FILTER arg_SOURCES EXCLUDE REGEX "_test[.]cc$")
    list(APPEND arg_SOURCES ${wanted})
  endif()
  if(arg_TOGETHER AND KEEL_TOGETHER)
    keel_batches(arg_SOURCES ${name} ${arg_SOURCES})
    set(arg_HEADERS "")
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_include_directories(${name} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}") # a batch is a file in another folder
  target_link_libraries(${name} PRIVATE keel::abi ${arg_LIBS} GTest::gtest GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE
    "KEEL_TEST_PLUGINS=\"${KEEL_PLUGIN_OUTPUT}\"" "KEEL_TEST_BUILD=\"${CMAKE_BINARY_DIR}\""
    "KEEL_TEST_DATA=\"${CMAKE_SOURCE_DIR}/tests/data\"")
  target_compile_options(${name} PRIVATE -O0) # only tested code is optimised: tests take longer to compile than to run
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  keel_test_headers(${name} "${arg_SOURCES}" "${arg_HEADERS}")
  if(arg_LIBS MATCHES "keel::keel|keel_kernel") # so that a build of this target alone has the plugins that it loads
    add_dependencies(${name} keel_plugins)
  endif()
  if(wanted)
    add_dependencies(keel_tests ${name})
    if(KEEL_SANITIZE STREQUAL "thread") # which does not support children of a process that has had threads
      gtest_discover_tests(${name} TEST_PREFIX "${name}." DISCOVERY_MODE PRE_TEST PROPERTIES LABELS "${name}" TIMEOUT 300)
    else()
      keel_run_test(${name} ${name})
    endif()
  else()
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
endfunction()

# keel_run_test(TEST PROGRAM [argument...]): has ctest run a program as a whole.
function(keel_run_test test program)
  add_test(NAME ${test}
    COMMAND ${program} "--gtest_output=xml:${CMAKE_BINARY_DIR}/tests/results/${test}.xml" ${ARGN})
  set_tests_properties(${test} PROPERTIES LABELS "${test}" TIMEOUT 900)
endfunction()

# A program's own precompiled headers, or those of the first program that needs no others.
function(keel_test_headers name sources headers)
  set(common <atomic> <filesystem> <fstream> <functional> <random> <thread> <gtest/gtest.h>)
  get_property(first GLOBAL PROPERTY KEEL_FIRST_TEST)
  if(headers)
    target_precompile_headers(${name} PRIVATE ${common} ${headers})
  elseif(sources MATCHES "[.]c(;|$)|/batch_[0-9]+[.]cc")
    return()
  elseif(first)
    target_precompile_headers(${name} REUSE_FROM ${first})
  else()
    target_precompile_headers(${name} PRIVATE ${common})
    set_property(GLOBAL PROPERTY KEEL_FIRST_TEST ${name})
  endif()
endfunction()

# keel_batches(OUT NAME file...): files that hold seven of these each.
function(keel_batches out name)
  set(size 7)
  set(all "")
  list(LENGTH ARGN count)
  math(EXPR last "${count} - 1")
  foreach(begin RANGE 0 ${last} ${size})
    list(SUBLIST ARGN ${begin} ${size} files)
    set(headers "#include <gtest/gtest.h>")
    set(body "")
    foreach(file IN LISTS files)
      cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}") # for the headers
      file(STRINGS "${file}" lines REGEX "^ *#include ")
      list(APPEND headers ${lines})
      cmake_path(GET file STEM stem)
      string(MAKE_C_IDENTIFIER "${stem}" space)
      string(APPEND body "namespace file_${space} {\n#include \"${file}\"\n}\n")
    endforeach()
    list(REMOVE_DUPLICATES headers)
    list(JOIN headers "\n" headers)
    set(batch "${CMAKE_CURRENT_BINARY_DIR}/${name}_batches/batch_${begin}.cc")
    file(CONFIGURE OUTPUT "${batch}" CONTENT "${headers}\n${body}" @ONLY)
    list(APPEND all "${batch}")
  endforeach()
  set(${out} ${all} PARENT_SCOPE)
endfunction()

# `#include "embed/VARIABLE.h"` then gives keel::VARIABLE, the packed texts of the files (kernel/base/unpack.h).
function(keel_embed target variable)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  set(base "${CMAKE_CURRENT_BINARY_DIR}/embed/${variable}")
  list(TRANSFORM ARGN PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/" REGEX "^[^/]" OUTPUT_VARIABLE files)
  file(CONFIGURE OUTPUT "${base}.h" CONTENT "// Generated by keel_embed.
#pragma once
#include \"kernel/base/unpack.h\"
namespace keel {
extern const PackedTexts ${variable};
}
")
  set(script "${CMAKE_SOURCE_DIR}/tools/cmake/embed.py")
  add_custom_command(OUTPUT "${base}.cc"
    COMMAND Python3::Interpreter "${script}" ${variable} "${base}.cc" ${files}
    DEPENDS ${files} "${script}" VERBATIM)
  target_sources(${target} PRIVATE "${base}.cc")
  target_include_directories(${target} PUBLIC "$<BUILD_INTERFACE:${CMAKE_CURRENT_BINARY_DIR}>")
endfunction()

# `#include "NAME_generated.h"` for NAME.fbs, seen by TARGET only.
function(keel_flatbuffer target schema)
  find_program(KEEL_FLATC flatc REQUIRED)
  cmake_path(ABSOLUTE_PATH schema BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
  cmake_path(GET schema STEM name)
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/flatbuffer")
  add_custom_command(OUTPUT "${folder}/${name}_generated.h"
    COMMAND "${KEEL_FLATC}" --cpp --scoped-enums --gen-object-api -o "${folder}" "${schema}"
    DEPENDS "${schema}" VERBATIM)
  target_sources(${target} PRIVATE "${folder}/${name}_generated.h")
  target_include_directories(${target} SYSTEM PRIVATE "${folder}")
endfunction()

# Most of a file's compile time goes into headers that its neighbours include, too. Files of one folder therefore share a
# namespace: names in anonymous namespaces differ between them, and from functions in headers, of which they would otherwise
# become overloads that a neighbour calls.
function(keel_compile_together target count)
  if(NOT KEEL_TOGETHER)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "[.]cc$")
  foreach(file IN LISTS sources)
    cmake_path(ABSOLUTE_PATH file)
    cmake_path(RELATIVE_PATH file OUTPUT_VARIABLE short)
    cmake_path(GET short PARENT_PATH folder)
    string(MAKE_C_IDENTIFIER "${folder}" folder)
    list(APPEND in_${folder} "${file}")
    list(LENGTH in_${folder} length)
    math(EXPR group "(${length} - 1) / ${count}")
    set_source_files_properties("${file}" PROPERTIES UNITY_GROUP "${folder}_${group}")
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
