# Runs inside cpack when each component has been installed into a folder of its own, and before
# the folders are packed.  Adds what Debian wants of every package, and moves what Debian's
# programs look for elsewhere than those of other systems.
if(NOT CPACK_GENERATOR STREQUAL DEB)
  return()
endif()

# packed(FILE AS): a copy as gzip makes it, with neither name nor time inside.
function(packed FILE AS)
  execute_process(COMMAND gzip -9nc ${FILE} OUTPUT_FILE ${AS} COMMAND_ERROR_IS_FATAL ANY)
  file(CHMOD ${AS} PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
endfunction()

# documents(PLACE PATHS): copies files and folders of the sources, for readers: without the data
# of figures, and what is for CMake.
function(documents PLACE)
  foreach(path ${ARGN})
    file(COPY ${CPACK_PERHAPS_SOURCE}/${path} DESTINATION ${PLACE} NO_SOURCE_PERMISSIONS
         PATTERN *.json EXCLUDE PATTERN CMakeLists.txt EXCLUDE
         PATTERN perhaps.1 EXCLUDE PATTERN __pycache__ EXCLUDE)
  endforeach()
endfunction()

foreach(component ${CPACK_COMPONENTS_ALL})
  string(TOUPPER ${component} UPPER)
  set(PACKAGE ${CPACK_DEBIAN_${UPPER}_PACKAGE_NAME})
  set(SHARE ${CPACK_TEMPORARY_DIRECTORY}/${component}${CPACK_PACKAGING_INSTALL_PREFIX}/share)
  set(PLACE ${SHARE}/doc/${PACKAGE})
  file(COPY ${CPACK_PERHAPS_COPYRIGHT} DESTINATION ${PLACE} NO_SOURCE_PERMISSIONS)
  packed(${CPACK_PERHAPS_SOURCE}/CHANGES.md ${PLACE}/changelog.gz)
  documents(${PLACE} ${CPACK_PERHAPS_${UPPER}_DOCUMENTS})
  documents(${PLACE}/examples ${CPACK_PERHAPS_${UPPER}_EXAMPLES})

  file(GLOB PAGES ${SHARE}/man/man1/*.1)
  foreach(page ${PAGES})
    packed(${page} ${page}.gz)
    file(REMOVE ${page})
  endforeach()

  # Zsh looks in site-functions below /usr/local only, where "cmake --install" puts them.
  if(EXISTS ${SHARE}/zsh/site-functions)
    file(RENAME ${SHARE}/zsh/site-functions ${SHARE}/zsh/vendor-completions)
  endif()

  if(CPACK_PERHAPS_${UPPER}_OVERRIDES)
    file(WRITE ${SHARE}/lintian/overrides/${PACKAGE} "${CPACK_PERHAPS_${UPPER}_OVERRIDES}")
  endif()
endforeach()
