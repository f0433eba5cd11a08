# cmake -DKEEL=command -DFOLDER=folder -P man.cmake
# Writes FOLDER/keel.1 and FOLDER/keel-SUBCOMMAND.1 for each subcommand that the command completes to.
file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}")
execute_process(COMMAND "${KEEL}" --man OUTPUT_FILE "${FOLDER}/keel.1" COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${KEEL}" --complete "" OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "(^|\n)[a-z-]+\t" names "${text}")
foreach(name IN LISTS names)
  string(STRIP "${name}" name)
  execute_process(COMMAND "${KEEL}" "${name}" --man OUTPUT_FILE "${FOLDER}/keel-${name}.1" COMMAND_ERROR_IS_FATAL ANY)
endforeach()
