# What the build of the whole tree defines, for a build of this folder alone: the target keel::cpp, by a
# finished build or an installed tree, KEEL_ROOT. Without one (as in `pip install ./sdk/python`) the tree is built
# and installed into this build's folder first, which takes minutes and needs what tools/setup brings.
set(KEEL_SOURCE "${CMAKE_CURRENT_SOURCE_DIR}/../..")
set(KEEL_ROOT "" CACHE PATH "Where Keel is installed, or a finished build")
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
  set(build "${CMAKE_BINARY_DIR}/keel")
  set(KEEL_ROOT "${CMAKE_BINARY_DIR}/installed")
  keel_step(-S "${KEEL_SOURCE}" -B "${build}" -DCMAKE_BUILD_TYPE=Release -DKEEL_TESTS=OFF -DKEEL_PYTHON=OFF
    -DCMAKE_INSTALL_LIBDIR=lib)
  keel_step(--build "${build}" --parallel)
  keel_step(--install "${build}" --prefix "${KEEL_ROOT}" --component runtime)
endif()

find_library(KEEL_LIBRARY keel NAMES libkeel.so.0 PATHS "${KEEL_ROOT}/lib" "${KEEL_ROOT}/lib64" NO_DEFAULT_PATH REQUIRED)
add_library(keel::cpp INTERFACE IMPORTED)
target_include_directories(keel::cpp INTERFACE "${KEEL_SOURCE}/sdk/cpp" "${KEEL_SOURCE}/sdk/cpp/keel"
  "${KEEL_SOURCE}/abi" "${KEEL_SOURCE}")
target_link_libraries(keel::cpp INTERFACE "${KEEL_LIBRARY}")

if(SKBUILD) # libkeel and its plugins go into the wheel, beside the extension
  cmake_path(GET KEEL_LIBRARY PARENT_PATH folder)
  file(REAL_PATH "${KEEL_LIBRARY}" library)
  install(PROGRAMS "${library}" DESTINATION keel/lib RENAME libkeel.so.0)
  install(DIRECTORY "${folder}/plugins" DESTINATION keel/lib USE_SOURCE_PERMISSIONS)
endif()
