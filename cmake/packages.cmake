# Debian packages, one of each component: cmake --build build --target package

set(CPACK_VERBATIM_VARIABLES TRUE)
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES TRUE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION TRUE)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "") # each package has its own
set(CPACK_COMPONENTS_ALL "")

# Who answers for the packages: as Debian's own tools take it, from the environment.
if(NOT CPACK_PACKAGE_CONTACT)
  if("$ENV{DEBEMAIL}" STREQUAL "")
    set(CPACK_PACKAGE_CONTACT "the perhaps authors <root@localhost>")
  elseif("$ENV{DEBFULLNAME}" STREQUAL "")
    set(CPACK_PACKAGE_CONTACT "$ENV{DEBEMAIL}")
  else()
    set(CPACK_PACKAGE_CONTACT "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
  endif()
endif()

# What debian.cmake puts into each.  The terms are those of LICENSE: lines of such a file begin
# with a space, and an empty one has a dot.
file(READ LICENSE EXPAT)
string(REGEX MATCH "Copyright \\(c\\) ([^\n]*)\n\n(.*)\n" EXPAT "${EXPAT}")
set(COPYRIGHT "${CMAKE_MATCH_1}")
string(REPLACE "\n" "\n " EXPAT " ${CMAKE_MATCH_2}")
string(REPLACE "\n \n" "\n .\n" EXPAT "${EXPAT}")
configure_file(cmake/copyright.in cmake/copyright @ONLY)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS LICENSE)
set(CPACK_PERHAPS_COPYRIGHT ${PROJECT_BINARY_DIR}/cmake/copyright)
set(CPACK_PERHAPS_SOURCE ${PROJECT_SOURCE_DIR})
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/debian.cmake)

# package(COMPONENT NAME SECTION SYNOPSIS DESCRIPTION
#         [DEPENDS TEXT] [SUGGESTS TEXT] [DOCUMENTS PATH...] [EXAMPLES PATH...])
macro(package COMPONENT NAME SECTION SYNOPSIS DESCRIPTION)
  cmake_parse_arguments(PACKAGE "" "DEPENDS;SUGGESTS" "DOCUMENTS;EXAMPLES" ${ARGN})
  list(APPEND CPACK_COMPONENTS_ALL ${COMPONENT})
  string(TOUPPER ${COMPONENT} UPPER)
  set(CPACK_DEBIAN_${UPPER}_PACKAGE_NAME ${NAME})
  set(CPACK_DEBIAN_${UPPER}_PACKAGE_SECTION ${SECTION})
  set(CPACK_DEBIAN_${UPPER}_PACKAGE_DEPENDS "${PACKAGE_DEPENDS}")
  set(CPACK_DEBIAN_${UPPER}_PACKAGE_SUGGESTS "${PACKAGE_SUGGESTS}")
  set(CPACK_DEBIAN_${UPPER}_DESCRIPTION "${SYNOPSIS}\n${ABOUT_FILTERS}\n\n${DESCRIPTION}")
  set(CPACK_PERHAPS_${UPPER}_DOCUMENTS ${PACKAGE_DOCUMENTS})
  set(CPACK_PERHAPS_${UPPER}_EXAMPLES ${PACKAGE_EXAMPLES})
endmacro()

# Debian wants lines of at most 80 characters.
set(ABOUT_FILTERS
    "A filter stores a few bits for each key of a set, and tells at the speed of
memory that a key is certainly not in the set, or that it perhaps is.
\"Perhaps\" is wrong for at most the share of absent keys that was asked for.")

# ---- The packages ----------------------------------------------------------------------------

# A package that was built with these libraries depends on this version, or a later one of the
# same ABI: dpkg-shlibdeps reads so in shlibs.
set(SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
package(library libperhaps${SOVERSION} libs "filters for large sets of keys: shared libraries"
        "This package has what programs need that were built with the library.")
set(SHLIBS "")
foreach(name ${PC_FILES})
  string(APPEND SHLIBS
         "lib${name} ${SOVERSION} libperhaps${SOVERSION} (>= ${PROJECT_VERSION})\n")
endforeach()
file(WRITE ${PROJECT_BINARY_DIR}/cmake/shlibs "${SHLIBS}")
file(WRITE ${PROJECT_BINARY_DIR}/cmake/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/cmake/shlibs
                                               ${PROJECT_BINARY_DIR}/cmake/triggers)

file(GLOB C_EXAMPLES CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} examples/*.c)
set(DEV_DEPENDS libsodium-dev)
if(PERHAPS_CLUSTER)
  string(APPEND DEV_DEPENDS ", libhiredis-dev, libssl-dev")
endif()
package(dev libperhaps-dev libdevel "filters for large sets of keys: headers, static libraries"
        "This package has what programs are built with, all documents, and examples\nin C."
        DEPENDS "${DEV_DEPENDS}" DOCUMENTS README.md doc
        EXAMPLES ${C_EXAMPLES} examples/cache_guard)
set(CPACK_COMPONENT_DEV_DEPENDS library)

if(PERHAPS_CLI)
  package(tools perhaps utils "filters for large sets of keys: command line"
          "This package has the program perhaps, which builds filters from lines of\ntext, \
asks them, and drops repeated lines of a stream."
          SUGGESTS libperhaps-dev DOCUMENTS README.md)
endif()
if(PERHAPS_MODULE)
  package(module redis-perhaps database "Bloom and cuckoo filters inside Redis and Valkey"
          "This package has a module for the servers, with the commands BF.* and CF.*\nthat \
RedisBloom has, too."
          SUGGESTS "redis-server (>= 5:7.0) | valkey-server" DOCUMENTS doc/MODULE.md
          EXAMPLES examples/module/)
endif()
if(TARGET perhaps_python)
  package(python python3-perhaps python "filters for large sets of keys, from Python"
          "This package has the module perhaps for Python 3."
          DEPENDS "python3 (>= 3.11)" DOCUMENTS bindings/python/README.md
          EXAMPLES bindings/python/examples/)
endif()
if(TARGET perhaps_sqlite)
  package(sqlite libsqlite3-mod-perhaps database "filters for large sets of keys, inside SQLite"
          "This package has an extension that SQLite loads, with filters as values,\n\
which are BLOBs."
          DEPENDS "libsqlite3-0 (>= 3.31)" DOCUMENTS bindings/sqlite/README.md)
  string(CONCAT CPACK_PERHAPS_SQLITE_OVERRIDES
         "# SQLite loads it by the name of the file, and no program is linked with it\n"
         "libsqlite3-mod-perhaps: sharedobject-in-library-directory-missing-soname *\n")
endif()
if(TARGET perhaps_postgres)
  execute_process(COMMAND ${PG_CONFIG} --version OUTPUT_VARIABLE POSTGRES_MAJOR)
  string(REGEX REPLACE "^[^0-9]*([0-9]+).*" "\\1" POSTGRES_MAJOR "${POSTGRES_MAJOR}")
  package(postgres postgresql-${POSTGRES_MAJOR}-perhaps database
          "filters for large sets of keys, inside PostgreSQL ${POSTGRES_MAJOR}"
          "This package has the extension perhaps, with a type whose values are filters."
          DEPENDS "postgresql-${POSTGRES_MAJOR}" DOCUMENTS bindings/postgres/README.md
          EXAMPLES bindings/postgres/examples/)
endif()
include(CPack)
