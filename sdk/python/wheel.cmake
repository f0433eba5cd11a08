# Contents of a wheel in addition to the extension: libkeel, its plugins and the command, in the folders of KEEL_ROOT, so
# that they find each other; manual pages and completion in the venv's share/. tools/wheel adds libraries missing on some Linux.
cmake_path(GET KEEL_LIBRARY PARENT_PATH libraries)
file(REAL_PATH "${KEEL_LIBRARY}" library)
install(PROGRAMS "${library}" DESTINATION keel/lib RENAME libkeel.so.0)
install(DIRECTORY "${libraries}/keel" DESTINATION keel/lib USE_SOURCE_PERMISSIONS)
install(PROGRAMS "${KEEL_COMMAND}" DESTINATION keel/bin)
install(DIRECTORY "${KEEL_ROOT}/share/keel" DESTINATION keel/share) # for `keel demo`
foreach(folder IN ITEMS man bash-completion zsh fish)
  if(EXISTS "${KEEL_ROOT}/share/${folder}")
    install(DIRECTORY "${KEEL_ROOT}/share/${folder}" DESTINATION "${SKBUILD_DATA_DIR}/share")
  endif()
endforeach()
