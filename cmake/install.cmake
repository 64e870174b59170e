# What is installed, and where.  Components: library, dev, tools, module, and
# one for each binding, whose own CMakeLists.txt says what belongs to it and where.

set(LIBRARIES perhaps_shared perhaps_static)
set(HEADERS include/perhaps.h)
foreach(name plan file live sets window build fast embed layout)
  list(APPEND HEADERS include/perhaps_${name}.h)
endforeach()
set(PC_FILES perhaps)
if(PERHAPS_CLUSTER)
  list(APPEND LIBRARIES perhaps_cluster_shared perhaps_cluster_static)
  list(APPEND HEADERS include/perhaps_cluster.h include/perhaps_cluster_async.h)
  list(APPEND PC_FILES perhaps_cluster)
endif()

install(TARGETS ${LIBRARIES} EXPORT perhaps
        LIBRARY COMPONENT library NAMELINK_COMPONENT dev
        ARCHIVE COMPONENT dev)
install(FILES ${HEADERS} TYPE INCLUDE COMPONENT dev)

set(PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/perhaps)
install(EXPORT perhaps NAMESPACE perhaps:: FILE perhapsTargets.cmake DESTINATION ${PACKAGE_DIR}
        COMPONENT dev)
configure_package_config_file(cmake/perhapsConfig.cmake.in cmake/perhapsConfig.cmake
                              INSTALL_DESTINATION ${PACKAGE_DIR})
write_basic_package_version_file(cmake/perhapsConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cmake/perhapsConfig.cmake
              ${PROJECT_BINARY_DIR}/cmake/perhapsConfigVersion.cmake
        DESTINATION ${PACKAGE_DIR} COMPONENT dev)

# pkg-config finds the folders beside its file, wherever all of it has been put.
set(PC_DIR ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH UP_TO_PREFIX /prefix/${PC_DIR} /prefix)
string(REGEX REPLACE "/$" "" UP_TO_PREFIX ${UP_TO_PREFIX})
if(PERHAPS_SODIUM)
  set(SODIUM_PC libsodium)
endif()
foreach(name ${PC_FILES})
  configure_file(cmake/${name}.pc.in cmake/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/cmake/${name}.pc DESTINATION ${PC_DIR} COMPONENT dev)
endforeach()

if(PERHAPS_CLI)
  install(TARGETS perhaps COMPONENT tools)
  if(PERHAPS_CLUSTER)
    cmake_path(SET place NORMALIZE ${CMAKE_INSTALL_BINDIR}/${CLIENT_PLACE})
    install(TARGETS perhaps_client LIBRARY DESTINATION ${place} COMPONENT tools)
  endif()
  if(CURL_FOUND)
    cmake_path(SET place NORMALIZE ${CMAKE_INSTALL_BINDIR}/${FETCH_PLACE})
    install(TARGETS perhaps_fetch LIBRARY DESTINATION ${place} COMPONENT tools)
  endif()
  install(FILES doc/perhaps.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tools)
  if(COMPLETIONS) # under the names that the shells look for
    set(MADE ${PROJECT_BINARY_DIR}/completions)
    install(FILES ${MADE}/perhaps.bash RENAME perhaps COMPONENT tools
            DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
    install(FILES ${MADE}/perhaps.zsh RENAME _perhaps COMPONENT tools
            DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
    install(FILES ${MADE}/perhaps.fish COMPONENT tools
            DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
  endif()
endif()

if(PERHAPS_MODULE) # where Debian has modules of Redis
  install(TARGETS perhaps_module LIBRARY DESTINATION lib/redis/modules COMPONENT module)
endif()

add_custom_target(uninstall COMMENT "Removing what was installed last"
  COMMAND ${CMAKE_COMMAND} -DBUILD=${PROJECT_BINARY_DIR}
          -P ${PROJECT_SOURCE_DIR}/cmake/uninstall.cmake)

include(cmake/packages.cmake)
