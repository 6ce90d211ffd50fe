/* libraries: package */
/* Package files: round trip, determinism, every rule refused on write and on read, damaged files.
 */
#include "check.h"

#include "hostile.h"
#include "package/wire.h"
#include "target/target.h"

#include <string.h>

enum { TILE_COUNT = 4, ELEMENTS = 8 * 32 };

static uint8_t code[64], weights[ELEMENTS * 2];

/* A small package with something in every list: 4 tiles, a weight of 2 shards on 2 tiles each, an
 * input in one piece, an output of 4 row blocks. */
typedef struct Sample {
    Package package;
    PackageTile tiles[TILE_COUNT];
    PackageSegment segments[TILE_COUNT][3];
    PackageBinding input, output, weight;
    PackageSlice slices[3][8];
    PackageCall call;
    PackageSymbol symbols[2];
    PackageRegion regions[2];
    PackagePhase phase;
    PackageText texts[2];
    PackageAllocation allocation;
} Sample;

static PackageBinding bind(Sample *s, uint32_t which, const char *name, Format format,
                           uint32_t address)
{
    PackageBinding binding = {.name = name,
                              .dtype = "f16",
                              .shape = {2, {8, 32}},
                              .slices = s->slices[which],
                              .format = format};
    TensorType type = {binding.shape, format};
    assert_ok(type_check(&type));
    uint64_t offset = 0;
    for (uint32_t shard = 0; shard < type_shard_count(&type); shard++)
        for (uint32_t r = 0; r < format.replicas; r++) {
            uint64_t bytes = type_shard_bytes(&type, shard);
            binding.slices[binding.slice_count++] = (PackageSlice){
                target_physical(type_tile_of_shard(&type, shard, r)), address, offset, bytes};
            offset += bytes;
        }
    return binding;
}

static void make_sample(Sample *s)
{
    *s = (Sample){0};
    for (uint32_t i = 0; i < sizeof code; i++)
        code[i] = (uint8_t)(i * 7);
    for (uint32_t i = 0; i < sizeof weights; i++)
        weights[i] = (uint8_t)(i * 13);
    for (uint32_t t = 0; t < TILE_COUNT; t++) {
        s->segments[t][0] = (PackageSegment){0x4c010, 64, 5, code, 64};
        s->segments[t][1] = (PackageSegment){0x58000, 1760, 3, code, 4};
        s->segments[t][2] = (PackageSegment){0x80000, 512, 3, weights + 256 * (t / 2), 256};
        s->tiles[t] = (PackageTile){.physical = target_physical(t),
                                    .entry = 0x4c010,
                                    .command_address = 0x5800c,
                                    .diagnostic_address = 0x58000,
                                    .segments = s->segments[t],
                                    .segment_count = 3,
                                    .steps_start = 0x5c000,
                                    .steps_end = 0x5c100 + t};
    }
    Format left = {.order = {ORDER_LEFT, 0, 0},
                   .memory_class = MEMORY_INTERLEAVED,
                   .tile_count = 4,
                   .replicas = 2,
                   .axis_count = 1,
                   .axes = {{1, false, 2, .block = 16}}};
    Format rows = {.tile_count = 4, .replicas = 1, .axis_count = 1, .axes = {{0, false, 4}}};
    s->weight = bind(s, 0, "w", left, 0x80000);
    s->input = bind(s, 1, "x", format_on_one_tile((Precision){F16, 0}, 3), 0x60000);
    s->output = bind(s, 2, "y", rows, 0x61000);
    s->call = (PackageCall){"run", 0, 2, 1};
    s->symbols[0] = (PackageSymbol){"kernel_a", 0x4c020};
    s->symbols[1] = (PackageSymbol){"kernel_b", 0x4c030};
    s->regions[0] = (PackageRegion){PACKAGE_ALL_TILES, 0x4c010, 64, "linked executable"};
    s->regions[1] = (PackageRegion){target_physical(1), 0x5c000, 64, "generated tile program"};
    s->phase = (PackagePhase){"a/b", 3, 100, 120, true, 1ull << 40};
    s->texts[0] = (PackageText){"model", "{}"};
    s->texts[1] = (PackageText){"recipe", "{\"a\": 1}"};
    s->allocation = (PackageAllocation){1, 0x60000, 64, 2, 5, "x"};
    s->package = (Package){.compiler_version = "test",
                           .tiles_used = TILE_COUNT,
                           .tiles = s->tiles,
                           .tile_count = TILE_COUNT,
                           .inputs = &s->input,
                           .input_count = 1,
                           .outputs = &s->output,
                           .output_count = 1,
                           .weights = &s->weight,
                           .weight_count = 1,
                           .calls = &s->call,
                           .call_count = 1,
                           .symbols = s->symbols,
                           .symbol_count = 2,
                           .regions = s->regions,
                           .region_count = 2,
                           .phases = &s->phase,
                           .phase_count = 1,
                           .texts = s->texts,
                           .text_count = 2,
                           .allocations = &s->allocation,
                           .allocation_count = 1,
                           .startup_mark = 23};
}

static void compare_bindings(const PackageBinding *a, const PackageBinding *b)
{
    assert_string_equal(a->name, b->name);
    assert_string_equal(a->dtype, b->dtype);
    assert_true(shape_equal(&a->shape, &b->shape));
    assert_true(format_equal(&a->format, &b->format));
    assert_int_equal(a->slice_count, b->slice_count);
    assert_memory_equal(a->slices, b->slices, a->slice_count * sizeof *a->slices);
}

static void compare(const Package *a, const Package *b)
{
    assert_string_equal(a->compiler_version, b->compiler_version);
    assert_int_equal(a->tiles_used, b->tiles_used);
    assert_int_equal(a->startup_mark, b->startup_mark);
    assert_int_equal(a->tile_count, b->tile_count);
    for (uint32_t t = 0; t < a->tile_count; t++) {
        const PackageTile *x = &a->tiles[t], *y = &b->tiles[t];
        assert_true(x->physical == y->physical && x->entry == y->entry &&
                    x->command_address == y->command_address && x->steps_end == y->steps_end &&
                    x->steps_start == y->steps_start &&
                    x->diagnostic_address == y->diagnostic_address);
        assert_int_equal(x->segment_count, y->segment_count);
        for (uint32_t s = 0; s < x->segment_count; s++) {
            const PackageSegment *p = &x->segments[s], *q = &y->segments[s];
            assert_true(p->address == q->address && p->memory_bytes == q->memory_bytes &&
                        p->flags == q->flags);
            assert_int_equal(p->data_bytes, q->data_bytes);
            assert_memory_equal(p->data, q->data, p->data_bytes);
        }
    }
    assert_true(a->input_count == 1 && a->output_count == 1 && a->weight_count == 1);
    compare_bindings(a->inputs, b->inputs);
    compare_bindings(a->outputs, b->outputs);
    compare_bindings(a->weights, b->weights);
    assert_int_equal(a->call_count, b->call_count);
    assert_string_equal(a->calls[0].name, b->calls[0].name);
    assert_int_equal(a->symbol_count, b->symbol_count);
    assert_string_equal(a->symbols[1].name, b->symbols[1].name);
    assert_int_equal(a->regions[1].physical, b->regions[1].physical);
    assert_int_equal(a->phases[0].words_received, b->phases[0].words_received);
    assert_string_equal(package_text(a, "recipe"), package_text(b, "recipe"));
    assert_null(package_text(a, "nothing"));
    assert_int_equal(a->allocations[0].last, b->allocations[0].last);
}

static void round_trip(void **state)
{
    (void)state;
    Sample s;
    Arena arena = {0};
    Bytes one, two;
    Package back;
    make_sample(&s);
    assert_ok(package_encode(&s.package, &one));
    assert_ok(package_encode(&s.package, &two));
    assert_int_equal(one.count, two.count);
    assert_memory_equal(one.data, two.data, one.count);
    assert_ok(package_decode(&arena, "sample", one.data, one.count, &back));
    compare(&back, &s.package);
    bytes_free(&two);
    assert_ok(package_encode(&back, &two)); /* what was read is written the same */
    assert_int_equal(one.count, two.count);
    assert_memory_equal(one.data, two.data, one.count);
    uint8_t *shifted = malloc(one.count + 1); /* unaligned memory is fine */
    memcpy(shifted + 1, one.data, one.count);
    assert_ok(package_decode(&arena, "sample", shifted + 1, one.count, &back));
    compare(&back, &s.package);
    free(shifted);
    bytes_free(&one);
    bytes_free(&two);
    arena_free(&arena);
}

/* Breaks one rule, expects the message on write, and on read of a file written without the check.
 */
static void refused(Sample *s, const char *message)
{
    Status status = package_check(&s->package);
    assert_non_null(strstr(status_message(status), message));
    status_free(status);
    Bytes bytes;
    assert_true(status_discard(package_encode(&s->package, &bytes)));
    assert_ok(wire_encode(&s->package, &bytes));
    Arena arena = {0};
    Package back;
    status = package_decode(&arena, "bad.ipuexe", bytes.data, bytes.count, &back);
    assert_non_null(strstr(status_message(status), message));
    assert_non_null(strstr(status_message(status), "bad.ipuexe"));
    status_free(status);
    arena_free(&arena);
    bytes_free(&bytes);
    make_sample(s);
}

static void rules(void **state)
{
    (void)state;
    Sample s;
    make_sample(&s);
    assert_ok(package_check(&s.package));
    s.package.tile_count = 0;
    refused(&s, "tiles: none");
    s.tiles[2].physical = s.tiles[1].physical;
    refused(&s, "stands twice");
    s.tiles[2].physical = 1472;
    refused(&s, "does not exist");
    s.segments[1][0].address = 0x4bff0;
    refused(&s, "outside the tile's memory");
    s.segments[1][2].memory_bytes = 0xffffff00;
    refused(&s, "outside the tile's memory");
    s.segments[1][1].memory_bytes = 3;
    refused(&s, "4 bytes of data in 3");
    s.segments[3][1].address = 0x4c04c;
    refused(&s, "segments[1] at 0x4c04c overlaps segments[0]");
    s.segments[0][0].flags = 8;
    refused(&s, "unknown flags");
    s.weight.name = "x";
    refused(&s, "the name stands twice");
    s.weight.name = "";
    refused(&s, "no name");
    s.weight.dtype = "f32";
    refused(&s, "not the layout's precision");
    s.slices[0][1].tile = 1471;
    refused(&s, "is not in the package");
    s.slices[0][1].tile = s.slices[0][0].tile;
    refused(&s, "is not replica 1 of shard 0");
    s.slices[0][1].address = 0xe7fff;
    refused(&s, "outside the tile's memory");
    s.slices[0][1].bytes = 1ull << 33;
    refused(&s, "outside the tile's memory");
    s.slices[0][1].file_offset++;
    refused(&s, "is not replica 1 of shard 0");
    s.weight.slice_count--;
    refused(&s, "is not replica 1 of shard 1");
    s.weight.shape.extent[1] = 48;
    refused(&s, "w");
    s.symbols[1].name = "";
    refused(&s, "debugSymbols[1]");
    s.regions[1].bytes = 0;
    refused(&s, "debugRegions[1]");
    s.regions[1].address = 0xffffffff;
    refused(&s, "debugRegions[1]");
    s.regions[1].physical = 1471;
    refused(&s, "debugRegions[1]");
    s.call.invocations = 0;
    refused(&s, "invocations");
    s.package.tiles_used = 1473;
    refused(&s, "tilesUsed");
}

/* Legal, though we do not write them: segments out of order, bindings without a layout. */
static void foreign(void **state)
{
    (void)state;
    Sample s;
    Arena arena = {0};
    Bytes bytes;
    Package back;
    make_sample(&s);
    PackageSegment first = s.segments[0][0];
    s.segments[0][0] = s.segments[0][2];
    s.segments[0][2] = first;
    s.weight.format = (Format){0};
    assert_ok(package_encode(&s.package, &bytes));
    assert_ok(package_decode(&arena, "foreign", bytes.data, bytes.count, &back));
    assert_false(binding_has_layout(&back.weights[0]));
    assert_int_equal(binding_raw_bytes(&back.weights[0]), 1024);
    uint8_t raw[1024];
    assert_true(status_discard(binding_pack(&back.weights[0], weights, raw)));
    bytes_free(&bytes);
    arena_free(&arena);
}

static void host_data(void **state)
{
    (void)state;
    Sample s;
    make_sample(&s);
    uint16_t logical[ELEMENTS], back[ELEMENTS];
    for (uint32_t i = 0; i < ELEMENTS; i++)
        logical[i] = (uint16_t)(i + 1);
    const PackageBinding *bindings[] = {&s.weight, &s.input, &s.output};
    for (uint32_t i = 0; i < countof(bindings); i++) {
        uint64_t bytes = binding_raw_bytes(bindings[i]);
        assert_int_equal(bytes, ELEMENTS * 2 * (i == 0 ? 2 : 1));
        uint8_t *raw = malloc(bytes);
        memset(back, 0, sizeof back);
        assert_ok(binding_pack(bindings[i], logical, raw));
        assert_ok(binding_unpack(bindings[i], raw, back));
        assert_memory_equal(back, logical, sizeof logical);
        if (i == 0) /* Left: element (row 1, column 16) opens the second shard's second row */
            assert_int_equal(load_u32(raw + 2 * 256 + 32) & 0xffff, 1 * 32 + 16 + 1);
        free(raw);
    }
}

static void try_decode(const uint8_t *data, size_t count)
{
    Arena arena = {0};
    Package back;
    uint8_t *exact = malloc(count + 1); /* no byte behind it: the sanitizer sees overruns */
    memcpy(exact, data, count);
    if (!status_discard(package_decode(&arena, "damaged", exact, count, &back)))
        for (uint32_t t = 0; t < back.tile_count; t++)
            for (uint32_t k = 0; k < back.tiles[t].segment_count; k++) {
                const PackageSegment *segment = &back.tiles[t].segments[k];
                if (segment->data_bytes) /* reachable */
                    assert_in_range(segment->data[segment->data_bytes - 1], 0, 255);
            }
    free(exact);
    arena_free(&arena);
}

static void truncated(void **state)
{
    (void)state;
    Sample s;
    Bytes bytes;
    make_sample(&s);
    assert_ok(package_encode(&s.package, &bytes));
    for (size_t n = 0; n < bytes.count; n++) {
        Arena arena = {0};
        Package back;
        Status status = package_decode(&arena, "short.ipuexe", bytes.data, n, &back);
        assert_non_null(strstr(status_message(status), "short.ipuexe"));
        status_free(status);
        arena_free(&arena);
    }
    bytes_free(&bytes);
}

/* Any bit that changes is noticed, wherever it lies: in code, data, names, padding or the checksum.
 */
static void sealed(void **state)
{
    (void)state;
    Sample s;
    Bytes bytes;
    Arena arena = {0};
    Package back;
    make_sample(&s);
    assert_ok(package_encode(&s.package, &bytes));
    assert_ok(package_decode(&arena, "sealed", bytes.data, bytes.count, &back));
    assert_true(back.checksum != 0);
    size_t noticed = 0;
    for (size_t byte = 0; byte < bytes.count; byte++) {
        size_t bit = byte * 8 + byte % 8;
        bytes.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        Status status = package_decode(&arena, "flipped.ipuexe", bytes.data, bytes.count, &back);
        assert_non_null(strstr(status_message(status), "flipped.ipuexe"));
        noticed += strstr(status_message(status), "its checksum is") != NULL;
        status_free(status);
        bytes.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    assert_true(noticed > bytes.count * 7 / 8); /* the others break the way to the checksum */
    bytes_free(&bytes);

    assert_ok(wire_encode(&s.package, &bytes)); /* other writers have none */
    assert_ok(package_decode(&arena, "open", bytes.data, bytes.count, &back));
    assert_int_equal(back.checksum, 0);
    Bytes longer = {malloc(bytes.count + 8), bytes.count + 8};
    memcpy(longer.data, bytes.data, bytes.count);
    memset(longer.data + bytes.count, 0, 8);
    Status status = package_decode(&arena, "longer", longer.data, longer.count, &back);
    assert_non_null(strstr(status_message(status), "8 bytes stand behind its end"));
    status_free(status);
    free(longer.data);
    bytes_free(&bytes);
    arena_free(&arena);
}

/* Complaints are in words, not the library's. */
static void no_message(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "{}", "{\"model\": 1, \"tiles\": 64}\n",
                                        "\177ELF\2\1\1\0\0\0\0\0\0\0\0\0"};
    static const size_t lengths[] = {0, 2, 26, 16};
    for (size_t i = 0; i < countof(texts); i++) {
        Arena arena = {0};
        Package package;
        Profile profile;
        const uint8_t *data = (const uint8_t *)texts[i];
        Status a = package_decode(&arena, "x", data, lengths[i], &package);
        Status b = profile_decode(&arena, "x", data, lengths[i], &profile);
        const char *word = lengths[i] < 8 ? "truncated" : "does not begin like one";
        assert_non_null(strstr(status_message(a), word));
        assert_non_null(strstr(status_message(b), word));
        status_free(a);
        status_free(b);
        arena_free(&arena);
    }
}

static void every_byte(void **state)
{
    (void)state;
    Sample s;
    Bytes bytes;
    make_sample(&s);
    assert_ok(wire_encode(&s.package, &bytes)); /* no checksum: the rules behind it are tried */
    static const uint8_t masks[] = {0x01, 0x80, 0xff};
    for (size_t i = 0; i < bytes.count; i++)
        for (uint32_t m = 0; m < countof(masks); m++) {
            bytes.data[i] ^= masks[m];
            try_decode(bytes.data, bytes.count);
            bytes.data[i] ^= masks[m];
        }
    bytes_free(&bytes);
}

static void random_damage(void **state)
{
    (void)state;
    Sample s;
    Bytes bytes;
    make_sample(&s);
    assert_ok(wire_encode(&s.package, &bytes)); /* no checksum: the rules behind it are tried */
    Text damaged = {0};
    for (Hostile hostile = hostile_begin(4000); hostile_more(&hostile);) {
        damaged.count = 0;
        array_append(&damaged, (const char *)bytes.data, bytes.count);
        hostile_damage(&hostile, &damaged);
        damaged.count -= hostile_random(&hostile, 4) ? damaged.count % 8 : 0;
        try_decode((const uint8_t *)damaged.items, damaged.count);
    }
    text_free(&damaged);
    bytes_free(&bytes);
}

/* All tiles with 64 KiB each: the size of a real package. */
static void large(void **state)
{
    (void)state;
    uint8_t *image = calloc(1, 65536);
    PackageTile *tiles = calloc(TILES, sizeof *tiles);
    PackageSegment segment = {0x5c000, 65536, 7, image, 65536};
    for (uint32_t t = 0; t < TILES; t++)
        tiles[t] = (PackageTile){.physical = t, .segments = &segment, .segment_count = 1};
    Package package = {.compiler_version = "test", .tiles = tiles, .tile_count = TILES}, back;
    Bytes bytes;
    Arena arena = {0};
    double start = seconds_now();
    assert_ok(package_encode(&package, &bytes));
    double middle = seconds_now();
    assert_ok(package_decode(&arena, "large", bytes.data, bytes.count, &back));
    print_message("%zu MiB: encoded in %.0f ms, decoded in %.1f ms\n", bytes.count >> 20,
                  (middle - start) * 1e3, (seconds_now() - middle) * 1e3);
    assert_int_equal(back.tile_count, TILES);
    bytes_free(&bytes);
    arena_free(&arena);
    free(tiles);
    free(image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),    cmocka_unit_test(rules),     cmocka_unit_test(foreign),
        cmocka_unit_test(host_data),     cmocka_unit_test(truncated), cmocka_unit_test(every_byte),
        cmocka_unit_test(random_damage), cmocka_unit_test(large),     cmocka_unit_test(sealed),
        cmocka_unit_test(no_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
