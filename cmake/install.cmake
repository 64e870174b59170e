# What is installed, where, and how it is packed.  Components: library, dev, tools, module, and
# one for each binding, whose own CMakeLists.txt says what belongs to it and where.

set(LIBRARIES perhaps_shared perhaps_static)
set(HEADERS include/perhaps.h include/perhaps_file.h include/perhaps_build.h
            include/perhaps_inline.h include/perhaps_layout.h)
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
foreach(name ${PC_FILES})
  configure_file(cmake/${name}.pc.in cmake/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/cmake/${name}.pc DESTINATION ${PC_DIR} COMPONENT dev)
endforeach()

if(PERHAPS_CLI)
  install(TARGETS perhaps COMPONENT tools)
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

# ---- Debian packages: cmake --build build --target package -------------------------------------

set(SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_CONTACT "the perhaps authors <root@localhost>")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL library dev)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)

set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libperhaps${SOVERSION})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "The library.")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME libperhaps-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libsodium-dev")
if(PERHAPS_CLUSTER)
  string(APPEND CPACK_DEBIAN_DEV_PACKAGE_DEPENDS ", libhiredis-dev, libssl-dev")
endif()
set(CPACK_COMPONENT_DEV_DEPENDS library)
set(CPACK_COMPONENT_DEV_DESCRIPTION "What programs are built with.")

if(PERHAPS_CLI)
  list(APPEND CPACK_COMPONENTS_ALL tools)
  set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME perhaps)
  set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION utils)
  set(CPACK_COMPONENT_TOOLS_DESCRIPTION "The command line.")
endif()
if(PERHAPS_MODULE)
  list(APPEND CPACK_COMPONENTS_ALL module)
  set(CPACK_DEBIAN_MODULE_PACKAGE_NAME redis-perhaps)
  set(CPACK_DEBIAN_MODULE_PACKAGE_SECTION database)
  set(CPACK_DEBIAN_MODULE_PACKAGE_SUGGESTS "redis-server (>= 5:7.0)")
  set(CPACK_COMPONENT_MODULE_DESCRIPTION "The module for Redis and Valkey.")
endif()
if(TARGET perhaps_python)
  list(APPEND CPACK_COMPONENTS_ALL python)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-perhaps)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "python3 (>= 3.11)")
  set(CPACK_COMPONENT_PYTHON_DESCRIPTION "The package for Python.")
endif()
if(TARGET perhaps_sqlite)
  list(APPEND CPACK_COMPONENTS_ALL sqlite)
  set(CPACK_DEBIAN_SQLITE_PACKAGE_NAME libsqlite3-mod-perhaps)
  set(CPACK_DEBIAN_SQLITE_PACKAGE_SECTION database)
  set(CPACK_DEBIAN_SQLITE_PACKAGE_DEPENDS "libsqlite3-0")
  set(CPACK_COMPONENT_SQLITE_DESCRIPTION "The extension for SQLite.")
endif()
if(TARGET perhaps_postgres)
  execute_process(COMMAND ${PG_CONFIG} --version OUTPUT_VARIABLE POSTGRES_MAJOR)
  string(REGEX REPLACE "^[^0-9]*([0-9]+).*" "\\1" POSTGRES_MAJOR "${POSTGRES_MAJOR}")
  list(APPEND CPACK_COMPONENTS_ALL postgres)
  set(CPACK_DEBIAN_POSTGRES_PACKAGE_NAME postgresql-${POSTGRES_MAJOR}-perhaps)
  set(CPACK_DEBIAN_POSTGRES_PACKAGE_SECTION database)
  set(CPACK_DEBIAN_POSTGRES_PACKAGE_DEPENDS "postgresql-${POSTGRES_MAJOR}")
  set(CPACK_COMPONENT_POSTGRES_DESCRIPTION "The extension for PostgreSQL.")
endif()
include(CPack)
