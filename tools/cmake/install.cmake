# What `cmake --install` puts down: bin/keel, libkeel with its plugins folder beside it, the headers as
# <keel/keel.h>, and what find_package(keel) and pkg-config need. The tree may be moved afterwards.
include(CMakePackageConfigHelpers)
install(DIRECTORY abi/ DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/keel" COMPONENT development
  FILES_MATCHING PATTERN "*.h" PATTERN frozen EXCLUDE)

if(TARGET keel::keel)
  get_target_property(library keel::keel ALIASED_TARGET)
  set_target_properties(${library} PROPERTIES EXPORT_NAME keel OUTPUT_NAME keel
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
  set_target_properties(keel_abi PROPERTIES EXPORT_NAME abi)
  set(targets ${library} keel_abi)
  if(TARGET keel_cpp)
    list(APPEND targets keel_cpp)
  endif()
  install(TARGETS ${targets} EXPORT keel
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT runtime)

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
