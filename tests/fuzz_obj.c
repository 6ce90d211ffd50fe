/* libraries: obj */
/* fuzz_obj.c - libFuzzer on the object reader and the linker: any bytes as an ELF object. */
#include "obj/obj.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const LinkRange range = {0x4c000, 0xe8000};
    Arena arena = {0};
    AsObject object;
    LinkImage image;
    Bytes bytes;
    Status status = obj_read(&arena, "fuzz", data, size, &object);
    if (status_ok(status)) {
        const AsObject *objects[] = {&object};
        LinkInput input = {
            .objects = objects, .object_count = 1, .ranges = &range, .range_count = 1};
        status_free(obj_link(&arena, &input, &image));
        status = obj_write(&object, &bytes);
        if (status_ok(status))
            bytes_free(&bytes);
    }
    status_free(status);
    arena_free(&arena);
    return 0;
}
