# Generated sources: the device kernels as C text, the Cap'n Proto readers and writers.
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/generated)

# kernels/*.S and *.inc -> generated/kernel_sources.c: { name, text } pairs, so that the command needs no files.
file(GLOB kernel_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/kernels/*.S ${CMAKE_SOURCE_DIR}/kernels/*.inc)
set(kernel_sources_c ${CMAKE_BINARY_DIR}/generated/kernel_sources.c)
add_custom_command(
  OUTPUT ${kernel_sources_c}
  COMMAND ${CMAKE_COMMAND} -DOUT=${kernel_sources_c} "-DFILES=${kernel_files}" -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
  DEPENDS ${kernel_files} ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
  COMMENT "Embedding device kernels" VERBATIM)
add_library(ipu_kernel_sources STATIC ${kernel_sources_c})
