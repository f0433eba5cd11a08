# Install rules by component; tools/cmake/package.cmake makes a Debian package of each.
#   runtime      libkeel
#   plugins      lib/keel/plugins (by keel_add_plugin, keel_add_rules)
#   command      bin/keel, its manual pages and completion files, share/keel (by cli/)
#   development  headers as <keel/keel.h>, files for find_package(keel) and pkg-config, abi.json, documents, examples
# The tree may be moved afterwards.
include(CMakePackageConfigHelpers)
set(documents "${CMAKE_INSTALL_DATADIR}/doc/keel")
install(DIRECTORY abi/ DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/keel" COMPONENT development
  FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp" PATTERN frozen EXCLUDE)
install(DIRECTORY sdk/plugin/ DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/keel/plugin" COMPONENT development FILES_MATCHING PATTERN "*.h")
install(DIRECTORY docs DESTINATION "${documents}" COMPONENT development PATTERN conf.py EXCLUDE PATTERN notes EXCLUDE)
install(FILES abi/README.md abi/FILE.md abi/graph.fbs DESTINATION "${documents}/abi" COMPONENT development)
install(FILES sdk/plugin/README.md DESTINATION "${documents}/sdk/plugin" COMPONENT development)
install(FILES sdk/cpp/keel/README.md DESTINATION "${documents}/sdk/cpp/keel" COMPONENT development)
install(DIRECTORY sdk/examples DESTINATION "${documents}/sdk" COMPONENT development
  PATTERN CMakeLists.txt EXCLUDE PATTERN "*.py[co]" EXCLUDE PATTERN __pycache__ EXCLUDE)
install(DIRECTORY "${CMAKE_SOURCE_DIR}/build/docs/html" DESTINATION "${documents}" COMPONENT development OPTIONAL) # tools/docs

if(TARGET keel::keel)
  get_target_property(library keel::keel ALIASED_TARGET)
  set_target_properties(${library} PROPERTIES EXPORT_NAME keel OUTPUT_NAME keel INSTALL_RPATH ""
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
  set_target_properties(keel_abi PROPERTIES EXPORT_NAME abi)
  set(targets ${library} keel_abi)
  if(TARGET keel_cpp)
    list(APPEND targets keel_cpp)
  endif()
  install(TARGETS ${targets} EXPORT keel
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT runtime NAMELINK_COMPONENT development)

  set(package "${CMAKE_INSTALL_LIBDIR}/cmake/keel")
  install(EXPORT keel NAMESPACE keel:: FILE keel-targets.cmake DESTINATION "${package}" COMPONENT development)
  configure_package_config_file(tools/cmake/keel-config.cmake.in keel-config.cmake
    INSTALL_DESTINATION "${package}")
  write_basic_package_version_file(keel-config-version.cmake COMPATIBILITY SameMinorVersion)
  install(FILES "${CMAKE_BINARY_DIR}/keel-config.cmake" "${CMAKE_BINARY_DIR}/keel-config-version.cmake"
    DESTINATION "${package}" COMPONENT development)

  file(RELATIVE_PATH KEEL_PC_TO_PREFIX "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
  string(REGEX REPLACE "/$" "" KEEL_PC_TO_PREFIX "${KEEL_PC_TO_PREFIX}")
  configure_file(tools/cmake/keel.pc.in keel.pc @ONLY)
  install(FILES "${CMAKE_BINARY_DIR}/keel.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT development)
endif()

include(package)
