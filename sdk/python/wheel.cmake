# What goes into a wheel beside the extension: libkeel, its plugins and the command, in folders as in KEEL_ROOT, so that
# they find each other; and the libraries that they need and that not every Linux has, such as libfmt.
cmake_path(GET KEEL_LIBRARY PARENT_PATH KEEL_LIBS)
cmake_path(GET KEEL_LIBS FILENAME KEEL_LIB) # lib, or lib64
file(REAL_PATH "${KEEL_LIBRARY}" library)
install(PROGRAMS "${library}" DESTINATION keel/${KEEL_LIB} RENAME libkeel.so.0)
install(DIRECTORY "${KEEL_LIBS}/keel" DESTINATION keel/${KEEL_LIB} USE_SOURCE_PERMISSIONS)
install(PROGRAMS "${KEEL_COMMAND}" DESTINATION keel/bin)
install(DIRECTORY "${KEEL_ROOT}/share/keel" DESTINATION keel/share) # for `keel demo`

# keel_bundle(EXECUTABLES|MODULES FOLDER file...): what these files need, into a folder of the package.
function(keel_bundle kind folder)
  list(JOIN ARGN "\" \"" files)
  install(CODE "
    file(GET_RUNTIME_DEPENDENCIES ${kind} \"${files}\" RESOLVED_DEPENDENCIES_VAR needed
      PRE_EXCLUDE_REGEXES [[^(libkeel|libkdnn|libkomp|libc|libm|libz|libstdc\\+\\+|libgcc_s|ld-linux.*)\\.so]])
    foreach(library IN LISTS needed)
      get_filename_component(name \"\${library}\" NAME)
      file(REAL_PATH \"\${library}\" real)
      file(INSTALL \"\${real}\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/keel/${folder}\" RENAME \"\${name}\")
    endforeach()")
endfunction()
file(GLOB plugins "${KEEL_LIBS}/keel/plugins/keel-*.so")
keel_bundle(EXECUTABLES ${KEEL_LIB} "${KEEL_COMMAND}")
keel_bundle(MODULES ${KEEL_LIB}/keel/plugins ${plugins})
