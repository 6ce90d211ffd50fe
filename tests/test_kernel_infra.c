/* libraries: kernel sim */
/* Objects on demand and from the disk cache; the runtime services around kernels. */
#include "kernel_bench.h"

#include <dirent.h>
#include <unistd.h>

static const KernelSpec specs[] = {
    {.family = KERNEL_GEMM, .p = {F16, 4, 32, 32, 0, 1, 0, 0}},
    {.family = KERNEL_FILL_ZERO, .p = {64}},
    {.family = KERNEL_GEMM, .p = {F16, 4, 32, 32, 1, 1, 0, 0}},
    {.family = KERNEL_FILL_ZERO, .p = {64}}, /* shared with the other one */
    {.family = KERNEL_COPY, .p = {1, 96, 96, 96}},
    {.family = KERNEL_COPY, .p = {3, 32, 32, 32}}, /* the same copy */
};
enum { DISTINCT = 5 /* with the runtime */ };

static void same_objects(const KernelObjects *a, const KernelObjects *b)
{
    assert_int_equal(a->count, b->count);
    for (uint32_t i = 0; i < a->count; i++) {
        Bytes x, y;
        assert_string_equal(a->names[i], b->names[i]);
        assert_ok(obj_write(a->objects[i], &x));
        assert_ok(obj_write(b->objects[i], &y));
        assert_int_equal(x.count, y.count);
        assert_memory_equal(x.data, y.data, x.count);
        bytes_free(&x);
        bytes_free(&y);
    }
}

static void for_each_file(const char *folder, void (*act)(const char *path))
{
    DIR *open = opendir(folder);
    assert_non_null(open);
    for (struct dirent *entry; (entry = readdir(open));) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.')
            act(path);
    }
    closedir(open);
}

static void truncate_file(const char *path)
{
    assert_int_equal(truncate(path, 100), 0);
}

static void remove_file(const char *path)
{
    assert_int_equal(unlink(path), 0);
}

static void objects_and_cache(void **state)
{
    (void)state;
    char cache[] = "/tmp/ipu-kernel-cache-XXXXXX", kernels[64];
    assert_non_null(mkdtemp(cache));
    snprintf(kernels, sizeof kernels, "%s/kernels", cache);
    Arena arena = {0};
    Pool *pool = pool_create(2);
    KernelObjects none, first, second, third;
    assert_ok(kernels_build(&arena, specs, countof(specs), NULL, NULL, &none));
    assert_int_equal(none.count, DISTINCT);
    assert_ok(kernels_build(&arena, specs, countof(specs), cache, pool, &first));
    assert_int_equal(first.cache_hits, 0);
    assert_ok(kernels_build(&arena, specs, countof(specs), cache, pool, &second));
    assert_int_equal(second.cache_hits, DISTINCT);
    for_each_file(kernels, truncate_file);
    assert_ok(kernels_build(&arena, specs, countof(specs), cache, pool, &third));
    assert_int_equal(third.cache_hits, 0);
    same_objects(&none, &first);
    same_objects(&none, &second);
    same_objects(&none, &third);
    for_each_file(kernels, remove_file);
    rmdir(kernels);
    rmdir(cache);
    pool_destroy(pool);
    arena_free(&arena);
}

static void variants_have_their_symbols(void **state)
{
    (void)state;
    KernelContract a, b;
    assert_ok(kernel_contract(&specs[0], &a));
    assert_ok(kernel_contract(&specs[2], &b));
    assert_string_not_equal(a.symbol, b.symbol);
    assert_ok(kernel_contract(&specs[1], &a));
    assert_ok(kernel_contract(&specs[3], &b));
    assert_string_equal(a.symbol, b.symbol);
}

static void errors_name_the_parameter(void **state)
{
    (void)state;
    Arena arena = {0};
    KernelObjects objects;
    KernelSpec bad = {.family = KERNEL_GEMM, .p = {F16, 4, 33, 32}};
    Status status = kernels_build(&arena, &bad, 1, NULL, NULL, &objects);
    assert_false(status_ok(status));
    assert_non_null(strstr(status_message(status), "gemm"));
    assert_non_null(strstr(status_message(status), "inner = 33"));
    status_free(status);
    bad.family = KERNEL_FAMILIES;
    assert_true(status_discard(kernels_build(&arena, &bad, 1, NULL, NULL, &objects)));
    assert_int_equal(kernel_cycles(&bad), 0);
    arena_free(&arena);
}

/* The runtime with a program of its own, on one tile. */
static Sim *start(Arena *arena, const char *program, LinkImage *image)
{
    KernelObjects objects;
    AsObject object;
    AsOptions options = {.supervisor = true};
    assert_ok(kernels_build(arena, NULL, 0, NULL, NULL, &objects));
    assert_ok(assemble(arena, "program", program, strlen(program), &options, &object));
    const AsObject *all[] = {objects.objects[0], &object};
    LinkRange range = {LINK_SECOND, BENCH_CODE_END};
    LinkInput input = {.objects = all, .object_count = 2, .ranges = &range, .range_count = 1};
    assert_ok(obj_link(arena, &input, image));
    Sim *sim;
    SimOptions machine = {.tiles = 1, .threads = 1, .max_cycles = 1000000};
    assert_ok(sim_create(&machine, &sim));
    for (uint32_t i = 0; i < image->segment_count; i++)
        assert_ok(sim_write(sim, 0, image->segments[i].address, image->segments[i].data,
                            image->segments[i].bytes));
    return sim;
}

static void start_and_completion(void **state)
{
    (void)state;
    Arena arena = {0};
    LinkImage image;
    Sim *sim = start(&arena,
                     ".supervisor\n.globl program\nprogram:\ncall $m7, ipu_worker_barrier\n"
                     "bri ipu_complete\n",
                     &image);
    uint32_t entry, program, done, logical = 41;
    assert_ok(link_symbol(&image, "ipu_start", &entry));
    assert_ok(link_symbol(&image, "program", &program));
    uint32_t block[6] = {0, 0, 0, 0, program, logical};
    assert_ok(sim_write(sim, 0, STATE_BASE, block, sizeof block));
    sim_set_entry(sim, 0, entry);
    assert_int_equal(sim_run(sim), SIM_RENDEZVOUS);
    SimContext context;
    sim_get_context(sim, 0, 0, &context);
    assert_int_equal(context.csr[isa_csr_number("INCOMING_MUX", MODE_SUPERVISOR)], MUX_HOST);
    assert_int_equal(context.m[11], STATE_BASE + STATE_STACK);
    assert_int_equal(sim_run(sim), SIM_COMPLETE);
    assert_ok(sim_read(sim, 0, STATE_BASE + STATE_COMPLETION, &done, sizeof done));
    assert_int_equal(done, 1);
    sim_get_context(sim, 0, 0, &context);
    assert_int_equal(context.csr[isa_csr_number("INCOMING_MUX", MODE_SUPERVISOR)], MUX_NEUTRAL);
    sim_destroy(sim);
    arena_free(&arena);
}

/* xoroshiro128aox as semantics-float.md 13 states it. */
static void draw(uint64_t *s0, uint64_t *s1)
{
    uint64_t sx = *s0 ^ *s1;
    *s0 = (*s0 << 55 | *s0 >> 9) ^ sx ^ sx << 14;
    *s1 = sx << 36 | sx >> 28;
}

static void workers_are_seeded(void **state)
{
    (void)state;
    Arena arena = {0};
    LinkImage image;
    Sim *sim = start(&arena, ".supervisor\n.globl program\nprogram:\nbri program\n", &image);
    uint32_t entry, block[6] = {0, 0, 0, 0, 0, 41};
    assert_ok(link_symbol(&image, "ipu_start", &entry));
    assert_ok(sim_write(sim, 0, STATE_BASE, block, sizeof block));
    sim_set_entry(sim, 0, entry);
    assert_int_equal(sim_run(sim), SIM_RENDEZVOUS);
    for (uint32_t w = 0; w < TILE_WORKERS; w++) {
        uint32_t v = 8 * (41 + 1) + w;
        uint64_t s0 = (uint64_t)~v << 32 | v;
        uint64_t s1 =
            (uint64_t)(uint32_t)(~v << 13 | v >> 19) << 32 | (uint32_t)(v << 13 | ~v >> 19);
        for (int i = 0; i < 16; i++)
            draw(&s0, &s1);
        SimContext context;
        sim_get_context(sim, 0, w + 1, &context);
        assert_int_equal(context.csr[0x103], (uint32_t)s0);
        assert_int_equal(context.csr[0x104], s0 >> 32);
        assert_int_equal(context.csr[0x105], (uint32_t)s1);
        assert_int_equal(context.csr[0x106], s1 >> 32);
        assert_int_equal(context.m[12], STATE_BASE + STATE_WORKER_BASE + 0x100 * w);
    }
    sim_destroy(sim);
    arena_free(&arena);
}

/* Two samples around nothing: what is between them is the second call up to its counter. */
static void samples(void **state)
{
    (void)state;
    Arena arena = {0};
    LinkImage image;
    Sim *sim = start(&arena,
                     ".supervisor\n.globl program\nprogram:\nmov $m9, $m10\n"
                     "setzi $m2, 0x58700\ncall $m10, ipu_sample_cycle\n"
                     "setzi $m2, 0x58704\ncall $m10, ipu_sample_cycle\nbr $m9\n",
                     &image);
    uint32_t program, words[2];
    uint64_t cycles;
    assert_ok(link_symbol(&image, "program", &program));
    assert_int_equal(sim_call(sim, 0, 0, program, &cycles), SIM_RETURNED);
    assert_ok(sim_read(sim, 0, 0x58700, words, sizeof words));
    uint32_t between = words[1] - words[0];
    assert_true(between % 6 == 0 && between >= 66 && between <= 102);
    sim_destroy(sim);
    arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_and_cache),         cmocka_unit_test(variants_have_their_symbols),
        cmocka_unit_test(errors_name_the_parameter), cmocka_unit_test(start_and_completion),
        cmocka_unit_test(workers_are_seeded),        cmocka_unit_test(samples)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
