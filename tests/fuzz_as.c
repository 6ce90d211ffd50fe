/* libraries: as */
/* fuzz_as.c - libFuzzer on the assembler (cmake -DIPU_FUZZ=ON with clang): any bytes as a source.
 */
#include "as/as.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena arena = {0};
    AsObject object;
    Text listing = {0};
    AsOptions options = {.listing = &listing, .supervisor = size % 2};
    status_free(assemble(&arena, "fuzz", (const char *)data, size, &options, &object));
    text_free(&listing);
    arena_free(&arena);
    return 0;
}
