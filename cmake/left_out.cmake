# What a configuration leaves out for lack of packages: told at its end, where nothing scrolls it
# away, and kept in left_out.txt of the build folder.

# left_out(WHAT PACKAGES): PACKAGES, words in one string, are those of Debian and Ubuntu that have
# what WHAT (of at most 40 characters) lacks.
function(left_out WHAT PACKAGES)
  set_property(GLOBAL APPEND PROPERTY PERHAPS_LEFT_OUT "${WHAT}" "${PACKAGES}")
endfunction()

function(tell_left_out)
  set(TEXT "Built: the library")
  foreach(part "perhaps_cluster_shared:the client of servers" "perhaps:the command line"
               "perhaps_module:the module" "perhaps_python:Python" "perhaps_sqlite:SQLite"
               "perhaps_postgres:PostgreSQL" "perhaps_web:JavaScript" "perhaps-demo:the benchmark" "support:the tests")
    string(REGEX MATCH "(.*):(.*)" part "${part}")
    if(TARGET ${CMAKE_MATCH_1})
      string(APPEND TEXT ", ${CMAKE_MATCH_2}")
    endif()
  endforeach()
  string(APPEND TEXT "\n")

  get_property(LEFT_OUT GLOBAL PROPERTY PERHAPS_LEFT_OUT)
  set(ALL "")
  if(LEFT_OUT)
    string(APPEND TEXT "Left out, for lack of what these packages of Debian have:\n")
  endif()
  while(LEFT_OUT)
    list(POP_FRONT LEFT_OUT what packages)
    string(LENGTH "${what}" length)
    math(EXPR room "40 - ${length}")
    string(REPEAT " " ${room} room)
    string(APPEND TEXT "  ${what}${room} ${packages}\n")
    string(REPLACE " " ";" packages "${packages}")
    list(APPEND ALL ${packages})
  endwhile()
  if(ALL)
    list(REMOVE_DUPLICATES ALL)
    list(JOIN ALL " " ALL)
    string(APPEND TEXT "Install them, and configure again:\n  sudo apt-get install ${ALL}\n")
  endif()
  file(WRITE ${PROJECT_BINARY_DIR}/left_out.txt "${TEXT}")
  string(STRIP "${TEXT}" TEXT)
  message(STATUS "${TEXT}")
endfunction()
cmake_language(DEFER DIRECTORY ${PROJECT_SOURCE_DIR} CALL tell_left_out)
