# Definitions of the full build, for a build of this folder alone: the target keel::cpp and the command, from a
# finished build or an installation, KEEL_ROOT. Without KEEL_ROOT (as in `pip install ./sdk/python`) the tree is built
# in this build's folder first, which takes minutes and needs the packages of tools/setup. For a wheel the build is
# installed, too: installed files find each other by relative paths.
set(KEEL_SOURCE "${CMAKE_CURRENT_SOURCE_DIR}/../..")
set(KEEL_ROOT "" CACHE PATH "An installation of Keel, or a finished build")
set(CMAKE_CXX_STANDARD 20)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
add_compile_options(-Wall -Wextra -Werror)

function(keel_step)
  execute_process(COMMAND "${CMAKE_COMMAND}" ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
if(NOT KEEL_ROOT)
  set(KEEL_ROOT "${CMAKE_BINARY_DIR}/keel")
  keel_step(-S "${KEEL_SOURCE}" -B "${KEEL_ROOT}" -DCMAKE_BUILD_TYPE=Release -DKEEL_TESTS=OFF -DKEEL_PYTHON=OFF
    -DCMAKE_INSTALL_LIBDIR=lib)
  if(NOT DEFINED ENV{CMAKE_BUILD_PARALLEL_LEVEL})
    set(parallel --parallel)
  endif()
  keel_step(--build "${KEEL_ROOT}" ${parallel})
endif()
if(SKBUILD AND EXISTS "${KEEL_ROOT}/cmake_install.cmake")
  foreach(component IN ITEMS runtime plugins command)
    keel_step(--install "${KEEL_ROOT}" --prefix "${CMAKE_BINARY_DIR}/installed" --component ${component} --strip)
  endforeach()
  set(KEEL_BUILD "${KEEL_ROOT}")
  set(KEEL_ROOT "${CMAKE_BINARY_DIR}/installed")
endif()

find_library(KEEL_LIBRARY keel NAMES libkeel.so.0 PATHS "${KEEL_ROOT}/lib" "${KEEL_ROOT}/lib64" NO_DEFAULT_PATH REQUIRED)
add_library(keel::cpp INTERFACE IMPORTED)
file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/abi" "${CMAKE_CURRENT_BINARY_DIR}/include") # CMake checks that they exist
file(CREATE_LINK "${KEEL_SOURCE}/abi" "${CMAKE_BINARY_DIR}/abi/keel" SYMBOLIC)
target_include_directories(keel::cpp INTERFACE "${KEEL_SOURCE}/sdk/cpp" "${CMAKE_BINARY_DIR}/abi")
target_link_libraries(keel::cpp INTERFACE "${KEEL_LIBRARY}")

set(KEEL_COMMAND "${KEEL_ROOT}/bin/keel")
set(KEEL_CATALOGUE "${KEEL_COMMAND}" ops --json)
keel_generate_ops(cpp "${CMAKE_CURRENT_BINARY_DIR}/include/keel" COMMAND ${KEEL_CATALOGUE} OUTPUT catalogue.hpp ops_plain.hpp ops.hpp)
add_custom_target(keel_cpp_ops DEPENDS ${generated})
add_dependencies(keel::cpp keel_cpp_ops)
target_include_directories(keel::cpp INTERFACE "${CMAKE_CURRENT_BINARY_DIR}/include")

if(SKBUILD)
  include(wheel.cmake)
endif()
