# What the build of the whole tree defines, for a build of this folder alone: the target keel::cpp, from a
# finished build or an installed tree. cmake -S sdk/python -B BUILD -DKEEL_ROOT=FOLDER
set(KEEL_SOURCE "${CMAKE_CURRENT_SOURCE_DIR}/../..")
set(KEEL_ROOT "${KEEL_SOURCE}/build/release" CACHE PATH "A finished build, or where Keel is installed")
set(CMAKE_CXX_STANDARD 20)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
add_compile_options(-Wall -Wextra -Werror)

find_library(KEEL_LIBRARY keel PATHS "${KEEL_ROOT}/lib" "${KEEL_ROOT}/lib64" NO_DEFAULT_PATH REQUIRED)
add_library(keel::cpp INTERFACE IMPORTED)
target_include_directories(keel::cpp INTERFACE "${KEEL_SOURCE}/sdk/cpp" "${KEEL_SOURCE}/sdk/cpp/keel"
  "${KEEL_SOURCE}/abi" "${KEEL_SOURCE}")
target_link_libraries(keel::cpp INTERFACE "${KEEL_LIBRARY}")
