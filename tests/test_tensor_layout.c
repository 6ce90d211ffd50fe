/* libraries: tensor */
/* Orders, tilings, regions, padding and packing against element-by-element definitions. */
#include "check.h"

#include "tensor_random.h"

#include <math.h>
#include <string.h>

static void check_tiles(const TensorType *type)
{
    uint32_t shards = type_shard_count(type), *hits = calloc(shards, sizeof *hits);
    const Format *f = &type->format;
    assert_int_equal(shards * f->replicas, f->tile_count);
    for (uint32_t t = 0; t < f->tile_count; t++) {
        int32_t shard = type_shard_of_tile(type, f->first_tile + t);
        assert_in_range(shard, 0, shards - 1);
        hits[shard]++;
    }
    assert_int_equal(type_shard_of_tile(type, f->first_tile + f->tile_count), -1);
    uint32_t *tiles = calloc(f->tile_count, sizeof *tiles);
    type_tiles(type, tiles);
    for (uint32_t s = 0; s < shards; s++) {
        assert_int_equal(hits[s], f->replicas);
        for (uint32_t r = 0; r < f->replicas; r++) {
            uint32_t tile = type_tile_of_shard(type, s, r);
            assert_int_equal(tiles[s * f->replicas + r], tile);
            assert_int_equal(type_shard_of_tile(type, tile), s);
            for (uint32_t q = 0; q < r; q++)
                assert_int_not_equal(type_tile_of_shard(type, s, q), tile);
        }
    }
    free(tiles);
    free(hits);
}

/* Every element in one shard at the sheet's offset; the padding is exactly the rest. */
static void check_offsets(const TensorType *type)
{
    uint32_t shards = type_shard_count(type), element = precision_bytes(type->format.precision);
    uint8_t **seen = calloc(shards, sizeof *seen);
    for (uint32_t s = 0; s < shards; s++) {
        assert_true(type_shard_bytes(type, s) <= type_max_shard_bytes(type));
        seen[s] = calloc(1, type_shard_bytes(type, s) + 1);
    }
    uint32_t index[MAX_RANK] = {0}, shard = 0;
    do {
        uint64_t offset = find_element(type, index, &shard);
        assert_int_equal(type_offset(type, shard, index), offset);
        assert_true(offset + element <= type_shard_bytes(type, shard));
        for (uint32_t b = 0; b < element; b++)
            assert_int_equal(seen[shard][offset + b]++, 0);
    } while (next_index(&type->shape, index));
    ByteRunArray runs = {0};
    for (uint32_t s = 0; s < shards; s++) {
        type_padding_runs(type, s, &runs);
        uint64_t end = 0;
        for (size_t i = 0; i < runs.count; i++) {
            assert_true(i == 0 || runs.items[i].offset > end);
            end = runs.items[i].offset + runs.items[i].bytes;
            for (uint64_t b = runs.items[i].offset; b < end; b++)
                assert_int_equal(seen[s][b]++, 0);
        }
        for (uint64_t b = 0; b < type_shard_bytes(type, s); b++)
            assert_int_equal(seen[s][b], 1);
        free(seen[s]);
    }
    array_free(&runs);
    free(seen);
}

static void check_packing(const TensorType *type)
{
    uint32_t element = precision_bytes(type->format.precision), shard = 0;
    uint64_t bytes = shape_elements(&type->shape) * element;
    uint8_t *logical = malloc(bytes), *back = calloc(1, bytes);
    for (uint64_t i = 0; i < bytes; i++)
        logical[i] = (uint8_t)(1 + random_below(255)); /* never zero: padding is told apart */
    for (uint32_t s = 0; s < type_shard_count(type); s++) {
        uint64_t count = type_shard_bytes(type, s), set = 0, logical_count = 0;
        uint8_t *packed = malloc(count + 1);
        memset(packed, 0xee, count + 1);
        type_pack_shard(type, s, logical, packed);
        assert_int_equal(packed[count], 0xee);
        for (uint64_t i = 0; i < count; i++)
            set += packed[i] != 0;
        uint32_t index[MAX_RANK] = {0};
        do {
            uint64_t offset = find_element(type, index, &shard);
            if (shard != s)
                continue;
            assert_memory_equal(packed + offset,
                                logical + flat_index(&type->shape, index) * element, element);
            logical_count += element;
        } while (next_index(&type->shape, index));
        assert_int_equal(set, logical_count);
        type_unpack_shard(type, s, packed, back);
        free(packed);
    }
    assert_memory_equal(logical, back, bytes);
    free(logical);
    free(back);
}

static void random_types(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 1000; i++) {
        TensorType type = random_type(random_shape(4, 37), (uint8_t)random_below(4));
        check_tiles(&type);
        check_offsets(&type);
        if (type_shard_count(&type) <= 24)
            check_packing(&type);
    }
}

/* Cases with known answers from seeds.md B.1 and C. */
static void known_cases(void **state)
{
    (void)state;
    Region region;
    /* E2/1472 over 729 rows uses 729 tiles. */
    TensorType rows = {
        {3, {1, 729, 1152}},
        {.tile_count = 1472, .replicas = 1, .axis_count = 1, .axes = {{1, false, 1472}}}};
    assert_ok(type_check(&rows));
    uint32_t used = 0;
    for (uint32_t s = 0; s < 1472; s++)
        used += type_shard_region(&rows, s, &region);
    assert_int_equal(used, 729);
    /* 289 row pairs over 13: 46 or 44 rows; 80,960 and 77,440 bytes of 880 columns. */
    TensorType pairs = {{2, {577, 880}},
                        {.order = {ORDER_LEFT},
                         .tile_count = 13,
                         .replicas = 1,
                         .axis_count = 1,
                         .axes = {{0, true, 13, .block = 2}}}};
    assert_ok(type_check(&pairs));
    assert_int_equal(type_shard_bytes(&pairs, 0), 80960);
    assert_int_equal(type_shard_bytes(&pairs, 12), 77440);
    /* The left operand of a grid R x C x I: replicas 1, K stride C, rows stride C * I. */
    TensorType left = {{2, {64, 288}},
                       {.order = {ORDER_LEFT},
                        .tile_count = 4 * 9 * 3,
                        .replicas = 9,
                        .axis_count = 2,
                        .axes = {{1, false, 3, .block = 16}, {0, false, 4, .block = 2}}}};
    assert_ok(type_check(&left));
    assert_int_equal(type_tile_of_shard(&left, 0, 1), 1);
    assert_int_equal(type_tile_of_shard(&left, 1, 0), 9);
    assert_int_equal(type_tile_of_shard(&left, 3, 0), 27);
    /* The right one: columns stride 1, K stride C, replicas fill the top. */
    TensorType right = {{2, {288, 144}},
                        {.order = {ORDER_BLOCK_MAJOR, 96, 16},
                         .tile_count = 4 * 9 * 3,
                         .replicas = 4,
                         .axis_count = 2,
                         .axes = {{1, false, 9, .block = 16, .stride = 1},
                                  {0, false, 3, .block = 96, .stride = 9}}}};
    assert_ok(type_check(&right));
    assert_int_equal(type_tile_of_shard(&right, 1, 0), 1);
    assert_int_equal(type_tile_of_shard(&right, 9, 2), 9 + 54);
    /* A result: columns stride 1, rows stride 27; the replica digit fills the gap between. */
    TensorType result = left;
    result.format = (Format){
        .order = {ORDER_LEFT},
        .tile_count = 4 * 9 * 3,
        .replicas = 3,
        .axis_count = 2,
        .axes = {{1, true, 9, .block = 16, .stride = 1}, {0, false, 4, .block = 2, .stride = 27}}};
    assert_ok(type_check(&result));
    assert_int_equal(type_tile_of_shard(&result, 0, 1), 9);
    assert_int_equal(type_tile_of_shard(&result, 9, 0), 27);
}

/* The second product of an MLP whose blocks of K are summed by pairs of tiles: grid 3 x 18 x 27,
 * column blocks 2 j and 2 j + 1 side by side, those of j + 1 54 tiles on; K stride 2, rows 486. */
static void near_pieces(void **state)
{
    (void)state;
    TensorType partial = {
        {3, {27, 729, 1152}},
        {.order = {ORDER_LEFT},
         .tile_count = 1458,
         .replicas = 1,
         .axis_count = 3,
         .axes = {{2, true, 18, .block = 16, .stride = 54, .near = 2, .near_stride = 1},
                  {1, false, 3, .stride = 486},
                  {0, false, 27, .stride = 2}}}};
    assert_ok(type_check(&partial));
    for (uint32_t c = 0; c < 18; c++)
        for (uint32_t r = 0; r < 3; r++)
            for (uint32_t k = 0; k < 27; k++) {
                uint32_t shard = c + 18 * (r + 3 * k);
                uint32_t tile = r * 486 + c / 2 * 54 + k * 2 + c % 2;
                assert_int_equal(type_tile_of_shard(&partial, shard, 0), tile);
                assert_int_equal(type_shard_of_tile(&partial, tile), shard);
            }
    /* Its left operand: replicas fill the gaps that the columns leave. */
    TensorType left = {
        {2, {729, 4304}},
        {.order = {ORDER_LEFT},
         .tile_count = 1458,
         .replicas = 18,
         .axis_count = 2,
         .axes = {{0, false, 3, .stride = 486}, {1, true, 27, .block = 160, .stride = 2}}}};
    assert_ok(type_check(&left));
    for (uint32_t c = 0; c < 18; c++)
        assert_int_equal(type_tile_of_shard(&left, 1 + 3 * 5, c), 486 + 10 + c % 2 + c / 2 * 54);
    partial.format.axes[0].near = 4;
    Status status = type_check(&partial);
    assert_non_null(strstr(status_message(status), "near"));
    status_free(status);
}

/* A left operand of three panels of five rows on six tiles, held once: by all of them, or by every
 * other one. */
static void shares(void **state)
{
    (void)state;
    TensorType held = {{2, {5, 48}},
                       {.order = {ORDER_LEFT},
                        .first_tile = 8,
                        .tile_count = 6,
                        .replicas = 1,
                        .shares = 6,
                        .share_grain = 32}};
    assert_ok(type_check(&held));
    static const uint32_t all[] = {96, 96, 96, 64, 64, 64}; /* 15 rows of panels */
    for (uint32_t t = 0, at = 0; t < 6; at += all[t++]) {
        assert_int_equal(type_shard_of_tile(&held, 8 + t), t);
        assert_int_equal(type_shard_bytes(&held, t), all[t]);
        assert_int_equal(type_share_offset(&held, t), at);
    }
    held.format.share_every = 2;
    assert_ok(type_check(&held));
    for (uint32_t t = 0; t < 6; t++)
        assert_int_equal(type_shard_bytes(&held, t), t % 2 ? 0 : 160);
    assert_int_equal(type_share_offset(&held, 4), 320);
    Format blocks = format_blocks(&held.format);
    assert_int_equal(blocks.replicas, 6);
    Text text = {0};
    format_print(&text, &held.format);
    assert_string_equal(text_string(&text), "f16 left []/6 by 32 every 2 standard @8");
    text_free(&text);
    held.format.share_every = 7;
    assert_true(status_discard(type_check(&held)));
    held.format.share_every = 1;
    held.format.share_grain = 6; /* no whole words */
    assert_true(status_discard(type_check(&held)));
}

static void refused(void **state)
{
    (void)state;
    TensorType good = {{2, {8, 32}},
                       {.order = {ORDER_LEFT},
                        .tile_count = 4,
                        .replicas = 1,
                        .axis_count = 1,
                        .axes = {{0, false, 4, .block = 2}}}};
    assert_ok(type_check(&good));
    TensorType bad = good;
    bad.format.tile_count = 5;
    assert_true(status_discard(type_check(&bad)));
    bad = good;
    bad.shape.extent[1] = 24; /* no multiple of 16 columns */
    assert_true(status_discard(type_check(&bad)));
    bad = good;
    bad.shape.extent[0] = 7; /* would need padding */
    assert_true(status_discard(type_check(&bad)));
    bad.format.axes[0].pad = true;
    assert_ok(type_check(&bad));
    bad = good;
    bad.format.axes[0].stride = 3; /* 4 shards on 4 tiles, 3 apart: some never reached */
    assert_true(status_discard(type_check(&bad)));
    bad = good;
    bad.format.axes[0].axis = 2;
    assert_true(status_discard(type_check(&bad)));
    bad = good;
    bad.shape = (Shape){2, {1u << 30, 1u << 30}};
    assert_true(status_discard(type_check(&bad)));
    bad = good;
    bad.format.axis_count = 200;
    assert_true(status_discard(type_check(&bad)));
}

static void json_and_text(void **state)
{
    (void)state;
    Arena arena = {0};
    for (uint32_t i = 0; i < 300; i++) {
        TensorType type = random_type(random_shape(4, 37), (uint8_t)random_below(4));
        json_t *json = format_to_json(&type.format);
        char *text = json_dumps(json, 0);
        JsonPlace place;
        Format back;
        assert_ok(json_open(&arena, "format", text, strlen(text), &place));
        assert_ok(format_from_json(&place, &back));
        assert_true(format_equal(&back, &type.format));
        json_close(&place);
        json_decref(json);
        free(text);
    }
    Format format = {.order = {ORDER_LEFT},
                     .memory_class = MEMORY_INTERLEAVED,
                     .tile_count = 72,
                     .replicas = 2,
                     .axis_count = 2,
                     .axes = {{0, false, 4, .block = 2}, {1, true, 9, .block = 16}}};
    Text text = {0};
    format_print(&text, &format);
    assert_string_equal(text_string(&text), "f16 left [S0/4 b2; S1/9 b16 pad] x2 interleaved @0");
    text_free(&text);
    arena_free(&arena);
}

/* ---- codecs ---- */

/* Nearest representable by search over all codes, ties to the even code. */
static uint32_t nearest_code(double value, const double *values, uint32_t count)
{
    uint32_t best = 0;
    for (uint32_t c = 1; c < count; c++) {
        double d = fabs(values[c] - value), b = fabs(values[best] - value);
        if (d < b || (d == b && c % 2 == 0))
            best = c;
    }
    return best;
}

static void codecs(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x10000; h++) {
        float value = half_to_float((uint16_t)h);
        if (isnan(value))
            continue;
        assert_int_equal(half_from_float(value), h);
        assert_int_equal(half_from_double(value), h);
    }
    assert_int_equal(half_from_float(65519.0f), 0x7bff);
    assert_int_equal(half_from_float(65520.0f), 0x7c00);
    assert_int_equal(half_from_float(0x1p-25f), 0); /* tie to even */
    assert_int_equal(half_from_float(0x1.8p-25f), 1);
    assert_int_equal(half_from_double(1 + 0x1p-11 + 0x1p-40), 0x3c01); /* no double rounding */
    for (uint32_t i = 0; i < 200000; i++) {
        uint32_t bits = random_below(1u << 16) << 16 | random_below(1u << 16);
        float value;
        memcpy(&value, &bits, sizeof value);
        if (!isnan(value))
            assert_int_equal(half_from_float(value), half_from_double(value));
    }
    /* amp-kernels.md 6.1: vendor examples, then all neighbours. */
    static const float examples[][2] = {{7.0f, 0x56},  {7.25f, 0x56}, {7.5f, 0x57},
                                        {7.75f, 0x58}, {8.0f, 0x58},  {8.5f, 0x58},
                                        {9.0f, 0x59},  {9.5f, 0x5a},  {8.50390625f, 0x59}};
    for (uint32_t i = 0; i < countof(examples); i++)
        assert_int_equal(f143_from_float(examples[i][0]), (int)examples[i][1]);
    double values[128];
    for (uint32_t c = 0; c < 128; c++) {
        values[c] = f143_to_float((uint8_t)c);
        assert_int_equal(f143_from_float((float)values[c]), c);
        if (c)
            assert_int_equal(f143_from_float((float)-values[c]), c | 0x80);
    }
    assert_true(values[127] == 240 && values[1] == 0x1p-10 && values[8] == 0x1p-7);
    for (uint32_t i = 0; i < 100000; i++) {
        float value = ldexpf((float)random_below(1 << 16), (int)random_below(24) - 30);
        if (value < 240)
            assert_int_equal(f143_from_float(value), nearest_code(value, values, 128));
    }
    assert_int_equal(f143_from_float(NAN), 0x80);
    assert_int_equal(f143_from_float(-0.0f), 0);
    assert_int_equal(f143_from_float(-1e30f), 0xff);
    Precision f8 = {F8F143, -4}, f32 = {F32, 0};
    float in[2] = {1.0f, -15.5f}, out[2];
    uint8_t codes[2];
    convert_elements(in, f32, codes, f8, 2);
    convert_elements(codes, f8, out, f32, 2);
    assert_true(out[0] == 1.0f && out[1] == -15.0f); /* -15.5 / 2^-4 = -248 saturates */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_types), cmocka_unit_test(known_cases),
        cmocka_unit_test(near_pieces),  cmocka_unit_test(shares),
        cmocka_unit_test(refused),      cmocka_unit_test(json_and_text),
        cmocka_unit_test(codecs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
