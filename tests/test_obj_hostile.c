/* libraries: as obj */
/* test_obj_hostile.c - damaged ELF files: read or refused, never more; what is read also links or
 * is refused by the linker. */
#include "assembly.h"
#include "hostile.h"

#include "obj/obj.h"

static Bytes sound_object(void)
{
    static const char text[] =
        ".section .text.a, \"ax\"\n.align 8\n.globl a\n.type a, @function\na: call $lr, b\n.size "
        "a, . - a\n"
        "inner: setzi $m0, table\nrun $m0, $m1, inner\n.weak w\nw: br $lr\n.globl STACK\n.set "
        "STACK, 32\n"
        ".globl b\nb: bri a\n.data\ntable: .word inner, b, STACK\n.byte 1\n.bss\n.globl buffer\n"
        "buffer: .space 100\n";
    Assembled source = assembled_with(text, &(AsOptions){.supervisor = true});
    Bytes elf;
    assert_ok(source.status);
    assert_ok(obj_write(&source.object, &elf));
    assembled_free(&source);
    return elf;
}

static void survive(const char *bytes, size_t count)
{
    Arena arena = {0};
    AsObject object;
    uint8_t *exact = xmalloc(count);
    memcpy(exact, bytes, count);
    Status status = obj_read(&arena, "hostile", exact, count, &object);
    if (status_ok(status)) {
        static const LinkRange range = {0x4c000, 0xe8000};
        const AsObject *objects[] = {&object};
        const char *const roots[] = {"a"};
        LinkInput input = {
            .objects = objects, .object_count = 1, .ranges = &range, .range_count = 1};
        LinkImage image;
        status_free(obj_link(&arena, &input, &image));
        input.roots = roots;
        input.root_count = 1;
        status_free(obj_link(&arena, &input, &image));
        Bytes again;
        if (status_ok(status = obj_write(&object, &again)))
            bytes_free(&again);
    }
    status_free(status);
    array_release(exact);
    arena_free(&arena);
}

static void damaged_objects(void **state)
{
    (void)state;
    Bytes sound = sound_object();
    Text bytes = {0};
    for (Hostile hostile = hostile_begin(6000); hostile_more(&hostile);) {
        bytes.count = 0;
        array_append(&bytes, sound.data, sound.count);
        if (hostile.round > 1)
            hostile_damage(&hostile, &bytes);
        if (hostile_random(&hostile, 2) && bytes.count >= 8) { /* aim at fields: whole words */
            uint32_t at = hostile_random(&hostile, (uint32_t)bytes.count / 4) * 4;
            uint32_t old = load_u32(bytes.items + at), choice = hostile_random(&hostile, 5);
            store_u32(bytes.items + at, choice == 0   ? 0xffffffff
                                        : choice == 1 ? old + 1
                                        : choice == 2 ? old - 1
                                        : choice == 3 ? 0x80000000
                                                      : hostile_random(&hostile, 0xffff));
        }
        survive(bytes.items, bytes.count);
    }
    text_free(&bytes);
    bytes_free(&sound);
}

static void truncated_objects(void **state)
{
    (void)state;
    Bytes sound = sound_object();
    for (size_t count = 0; count < sound.count; count++)
        survive((const char *)sound.data, count);
    /* The table of sections is the end of the file: no part of it is an object of fewer sections.
     */
    for (size_t count = 52; count < sound.count; count++) {
        Arena arena = {0};
        AsObject object;
        Status status = obj_read(&arena, "cut", sound.data, count, &object);
        assert_false(status_ok(status));
        assert_non_null(strstr(status_message(status), "cut: the table of sections lies outside"));
        assert_int_equal(object.section_count, 0);
        status_free(status);
        arena_free(&arena);
    }
    bytes_free(&sound);
}

static void refused(Bytes *sound, size_t at, uint8_t value, const char *part)
{
    Arena arena = {0};
    AsObject object;
    uint8_t old = sound->data[at];
    sound->data[at] = value;
    Status status = obj_read(&arena, "bad.o", sound->data, sound->count, &object);
    if (!strstr(status_message(status), part) || strncmp(status_message(status), "bad.o: ", 7))
        fail_msg("says: %s, expected: %s", status_message(status), part);
    status_free(status);
    sound->data[at] = old;
    arena_free(&arena);
}

static void headers_are_checked(void **state)
{
    (void)state;
    Bytes sound = sound_object();
    refused(&sound, 0, 'x', "not a 32-bit ELF file");
    refused(&sound, 4, 2, ""); /* 64-bit */
    refused(&sound, 5, 2, ""); /* big-endian */
    refused(&sound, 18, 0x3e, "not for the IPU: machine 0x3e, expected 0xf8");
    refused(&sound, 16, 2, "not an object: ELF type 2");
    bytes_free(&sound);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_objects),
        cmocka_unit_test(truncated_objects),
        cmocka_unit_test(headers_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
