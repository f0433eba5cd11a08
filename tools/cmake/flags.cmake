# Flags that everything is compiled with, Abseil included; and the launchers that make builds quick.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}") # an installed tree may be moved

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
# With sanitizers the optimiser takes more than half of the compile time, more than it saves in tests; stack traces need
# line numbers only (-g1).
set(CMAKE_C_FLAGS_SANITIZE "-O0 -g1 -fno-omit-frame-pointer")
set(CMAKE_CXX_FLAGS_SANITIZE "-O0 -g1 -fno-omit-frame-pointer")
add_compile_options(-ffunction-sections -fdata-sections)
add_link_options(-Wl,--gc-sections)

if(KEEL_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all)
  add_link_options(-fsanitize=address,undefined)
elseif(KEEL_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread)
  add_link_options(-fsanitize=thread)
elseif(KEEL_SANITIZE)
  message(FATAL_ERROR "KEEL_SANITIZE is '${KEEL_SANITIZE}'; it must be empty, 'address' or 'thread'")
endif()

if(KEEL_FUZZ) # tools/fuzz adds the main program of libFuzzer to each of its targets
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# External headers of most files of a target are precompiled (target_precompile_headers in the folders): parsing them took
# more than half of a file's compile time. ccache needs a setting for it, and clang refuses differing flags.
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)
endif()
find_program(KEEL_CCACHE ccache)
if(KEEL_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER "${KEEL_CCACHE}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${KEEL_CCACHE}")
  if(NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
    list(PREPEND CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_CURRENT_LIST_DIR}/cached")
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
  endif()
endif()

find_program(KEEL_MOLD mold)
find_program(KEEL_LLD ld.lld)
if(KEEL_MOLD)
  add_link_options(-fuse-ld=mold)
elseif(KEEL_LLD)
  add_link_options(-fuse-ld=lld)
endif()
