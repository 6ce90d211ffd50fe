/* libraries: package */
/* fuzz_package.c - libFuzzer on the readers of packages and profiles: any bytes as a file. What is
 * read must be writable again. */
#include "package/package.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena arena = {0};
    Package package;
    Profile profile;
    Bytes bytes;
    Status status = package_decode(&arena, "fuzz", data, size, &package);
    if (status_ok(status)) {
        status = package_encode(&package, &bytes);
        if (status_ok(status))
            bytes_free(&bytes);
    }
    status_free(status);
    status = profile_decode(&arena, "fuzz", data, size, &profile);
    if (status_ok(status)) {
        status = profile_encode(&profile, false, &bytes);
        if (status_ok(status))
            bytes_free(&bytes);
    }
    status_free(status);
    arena_free(&arena);
    return 0;
}
