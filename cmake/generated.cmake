# Generated sources: the device kernels as C text, the Cap'n Proto readers and writers.
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/generated)

# kernels/*.S and *.inc -> generated/kernel_sources.c: { name, text } pairs, so that the command needs no files.
file(GLOB kernel_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/kernels/*.S ${CMAKE_SOURCE_DIR}/kernels/*.inc)
set(kernel_sources_c ${CMAKE_BINARY_DIR}/generated/kernel_sources.c)
add_custom_command(
  OUTPUT ${kernel_sources_c}
  COMMAND ${CMAKE_COMMAND} -DNAME=ipu_kernel_sources -DOUT=${kernel_sources_c} "-DFILES=${kernel_files}" -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
  DEPENDS ${kernel_files} ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
  COMMENT "Embedding device kernels" VERBATIM)
add_library(ipu_kernel_sources STATIC ${kernel_sources_c})

# src/profile/*.html, .css, .js -> generated/report_sources.c: the pages that reports fill in.
set(report_files ${CMAKE_SOURCE_DIR}/src/profile/report.html ${CMAKE_SOURCE_DIR}/src/profile/report.css
                 ${CMAKE_SOURCE_DIR}/src/profile/report_data.js ${CMAKE_SOURCE_DIR}/src/profile/report_views.js
                 ${CMAKE_SOURCE_DIR}/src/profile/memory.html ${CMAKE_SOURCE_DIR}/src/profile/memory.js)
set(report_sources_c ${CMAKE_BINARY_DIR}/generated/report_sources.c)
add_custom_command(
  OUTPUT ${report_sources_c}
  COMMAND ${CMAKE_COMMAND} -DNAME=ipu_report_sources -DOUT=${report_sources_c} "-DFILES=${report_files}"
          -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
  DEPENDS ${report_files} ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
  COMMENT "Embedding the report" VERBATIM)
add_library(ipu_report_sources STATIC ${report_sources_c})

# schemas/*.capnp -> generated C++ readers and writers, used by src/package alone.
find_program(CAPNP_COMPILER capnp REQUIRED)
foreach(schema application profile profile_common)
  list(APPEND schema_files ${CMAKE_SOURCE_DIR}/schemas/${schema}.capnp)
  list(APPEND schema_sources ${CMAKE_BINARY_DIR}/generated/schemas/${schema}.capnp.c++)
endforeach()
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/generated/schemas)
add_custom_command(
  OUTPUT ${schema_sources}
  COMMAND ${CAPNP_COMPILER} compile -oc++:${CMAKE_BINARY_DIR}/generated/schemas
          --src-prefix=${CMAKE_SOURCE_DIR}/schemas ${schema_files}
  DEPENDS ${schema_files} COMMENT "Compiling Cap'n Proto schemas" VERBATIM)
add_library(ipu_schemas STATIC ${schema_sources})
target_include_directories(ipu_schemas PUBLIC ${CMAKE_BINARY_DIR}/generated)
target_link_libraries(ipu_schemas PUBLIC PkgConfig::CAPNP)
