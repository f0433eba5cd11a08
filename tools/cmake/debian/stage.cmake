# Run by CPack on the staged trees: adds the files of Debian's policy, strips libraries, compresses manual pages.
file(GLOB trees "${CPACK_TEMPORARY_DIRECTORY}/*/usr")
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC) # of SOURCE_DATE_EPOCH if it is set
foreach(tree IN LISTS trees)
  cmake_path(GET tree PARENT_PATH stage)
  cmake_path(GET stage FILENAME component)
  string(TOUPPER "${component}" upper)
  set(documents "${tree}/share/doc/${CPACK_DEBIAN_${upper}_PACKAGE_NAME}")
  file(MAKE_DIRECTORY "${documents}")
  file(COPY_FILE "${CMAKE_CURRENT_LIST_DIR}/copyright" "${documents}/copyright")
  file(CONFIGURE OUTPUT "${documents}/changelog" @ONLY CONTENT
"keel (@CPACK_PACKAGE_VERSION@) unstable; urgency=medium

  * See the history of the source tree.

 -- @CPACK_PACKAGE_CONTACT@  @date@
")
  file(GLOB pages "${tree}/share/man/man1/*.1")
  execute_process(COMMAND gzip -9 -n -f "${documents}/changelog" ${pages} COMMAND_ERROR_IS_FATAL ANY)
  file(GLOB plugins "${tree}/lib/keel/plugins/*.so*") # `cmake --install` strips targets only
  if(plugins)
    execute_process(COMMAND strip --strip-unneeded ${plugins} COMMAND_ERROR_IS_FATAL ANY)
  endif()
  if(EXISTS "${tree}/bin/keel") # /usr/lib is searched anyway
    file(RPATH_REMOVE FILE "${tree}/bin/keel")
  endif()
endforeach()
