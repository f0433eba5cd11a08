# keel_generate_ops(KIND FOLDER COMMAND command... OUTPUT file...): files of the SDKs that tools/gen_ops.py makes of the catalogue, which
# the command prints. Sets `generated` to their paths. Files that would not change are left alone, so nothing is compiled again.
function(keel_generate_ops kind folder)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "COMMAND;OUTPUT")
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  list(TRANSFORM arg_OUTPUT PREPEND "${folder}/" OUTPUT_VARIABLE files)
  list(GET arg_COMMAND 0 program)
  set(command ${arg_COMMAND})
  if(TARGET "${program}")
    list(TRANSFORM command REPLACE "^${program}$" "$<TARGET_FILE:${program}>")
  endif()
  set(scripts "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../gen_ops.py" "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../gen_ops_python.py")
  add_custom_command(OUTPUT ${files} COMMENT "Making ${arg_OUTPUT} of the catalogue"
    COMMAND Python3::Interpreter "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../gen_ops.py" ${kind} "${folder}" ${command}
    DEPENDS ${program} ${scripts} VERBATIM)
  set(generated ${files} PARENT_SCOPE)
endfunction()
