/* libraries: base */
/* test_base.c - status context, arenas, arrays, maps, pool, files, JSON getters. */
#include "check.h"

#include "base/base.h"

#include <string.h>
#include <unistd.h>

static void status_gains_context(void **state)
{
    (void)state;
    Status status = status_context(status_error("no grid of %d tiles fits", 64), "gemm %s", "up");
    assert_string_equal(status_message(status), "gemm up: no grid of 64 tiles fits");
    assert_true(status_discard(status));
    assert_false(status_discard(status_context(STATUS_OK, "x")));
}

static void arena_keeps_alignment(void **state)
{
    (void)state;
    Arena arena = {0};
    for (size_t i = 1; i < 2000; i++) {
        uint8_t *bytes = arena_alloc(&arena, i, 8);
        assert_int_equal((uintptr_t)bytes % 8, 0);
        for (size_t k = 0; k < i; k++)
            assert_int_equal(bytes[k], 0);
        memset(bytes, 0xff, i);
    }
    uint8_t *large = arena_alloc(&arena, 1 << 20, 16);
    large[(1 << 20) - 1] = 1;
    arena_free(&arena);
}

static void map_finds_what_it_got(void **state)
{
    (void)state;
    Map map = {0};
    for (uint64_t i = 0; i < 5000; i++)
        *map_at(&map, i * i, NULL) = i;
    for (uint64_t i = 0; i < 5000; i++)
        assert_int_equal(*map_find(&map, i * i), i);
    assert_null(map_find(&map, 3));
    map_free(&map);
    bool added;
    *map_at_text(&map, "a", &added) = 1;
    assert_true(added);
    assert_int_equal(*map_at_text(&map, "a", &added), 1);
    assert_false(added);
    assert_null(map_find_text(&map, "b"));
    map_free(&map);
}

static void count_up(void *context, size_t index, unsigned worker)
{
    (void)worker;
    ((uint32_t *)context)[index]++;
}

static void pool_runs_each_index_once(void **state)
{
    (void)state;
    for (unsigned width = 1; width <= 4; width++) {
        Pool *pool = pool_create(width);
        static uint32_t counts[10000];
        memset(counts, 0, sizeof counts);
        for (int round = 0; round < 50; round++)
            parallel_for(pool, countof(counts), count_up, counts);
        for (size_t i = 0; i < countof(counts); i++)
            assert_int_equal(counts[i], 50);
        pool_destroy(pool);
    }
}

static void files_come_back(void **state)
{
    (void)state;
    char path[] = "/tmp/ipu-test-XXXXXX";
    assert_non_null(mkdtemp(path));
    char name[64];
    snprintf(name, sizeof name, "%s/a", path);
    assert_ok(file_write(name, "hello", 5));
    Bytes bytes;
    assert_ok(file_read(name, 5, &bytes));
    assert_string_equal((char *)bytes.data, "hello");
    bytes_free(&bytes);
    assert_true(status_discard(file_read(name, 4, &bytes)));
    assert_true(status_discard(file_read("/no/such/file", 4, &bytes)));
    unlink(name);
    rmdir(path);
}

static void json_errors_name_the_place(void **state)
{
    (void)state;
    Arena arena = {0};
    JsonPlace place, inner;
    const char *text = "{\"a\": {\"n\": 7}}";
    assert_ok(json_open(&arena, "x.json", text, strlen(text), &place));
    assert_ok(json_member(&place, "a", &inner));
    uint32_t n;
    assert_ok(json_u32(&inner, "n", 0, 7, &n));
    assert_int_equal(n, 7);
    Status status = json_u32(&inner, "n", 0, 6, &n);
    assert_string_equal(status_message(status), "x.json: a: n: 7 is not in 0..6");
    status_free(status);
    json_close(&place);
    status = json_open(&arena, "x.json", "{,}", 3, &place);
    assert_non_null(strstr(status_message(status), "x.json:1:"));
    status_free(status);
    arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_gains_context),  cmocka_unit_test(arena_keeps_alignment),
        cmocka_unit_test(map_finds_what_it_got), cmocka_unit_test(pool_runs_each_index_once),
        cmocka_unit_test(files_come_back),       cmocka_unit_test(json_errors_name_the_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
