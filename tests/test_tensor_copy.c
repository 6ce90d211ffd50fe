/* libraries: tensor */
/* Copy runs against element-by-element definitions: every destination element is written once, from
 * the element that the mapping names. Then the size and the time of a large retile. */
#include "check.h"

#include "tensor_random.h"

#include <string.h>

/* Source index of a destination index, from the definition of Mapping. False: not in the mapping
 * (the destination's offsets leave it out). */
static bool map_index(const Mapping *m, const uint32_t *destination, uint32_t *source)
{
    uint32_t atoms[MAX_ATOMS] = {0};
    for (uint32_t a = 0; a < m->destination_rank; a++) {
        if (destination[a] < m->destination[a].offset)
            return false;
        uint32_t rest = destination[a] - m->destination[a].offset;
        for (uint32_t i = m->destination[a].count; i-- > 0;) {
            uint32_t atom = m->destination[a].atoms[i];
            atoms[atom] = rest % m->extent[atom];
            rest /= m->extent[atom];
        }
        if (rest)
            return false;
    }
    for (uint32_t a = 0; a < m->source_rank; a++) {
        uint32_t index = 0;
        for (uint32_t i = 0; i < m->source[a].count; i++)
            index = index * m->extent[m->source[a].atoms[i]] + atoms[m->source[a].atoms[i]];
        source[a] = index + m->source[a].offset;
    }
    return true;
}

typedef struct Target { /* per destination shard: where every byte came from, + 1 */
    uint64_t **from;
    const TensorType *source, *destination;
    uint64_t bytes, runs;
    uint32_t last_source, last_destination;
} Target;

static void apply_run(void *context, const CopyRun *run)
{
    Target *t = context;
    assert_true(
        run->destination_shard > t->last_destination ||
        (run->destination_shard == t->last_destination && run->source_shard >= t->last_source));
    t->last_destination = run->destination_shard;
    t->last_source = run->source_shard;
    t->runs++;
    for (int64_t k = 0; k < run->count[2]; k++)
        for (int64_t j = 0; j < run->count[1]; j++)
            for (int64_t i = 0; i < run->count[0]; i++) {
                int64_t s = run->source_offset + i * run->source_step[0] + j * run->source_step[1] +
                            k * run->source_step[2];
                int64_t d = run->destination_offset + i * run->destination_step[0] +
                            j * run->destination_step[1] + k * run->destination_step[2];
                assert_true(s >= 0 && d >= 0);
                assert_true((uint64_t)s + run->bytes <=
                            type_shard_bytes(t->source, run->source_shard));
                assert_true((uint64_t)d + run->bytes <=
                            type_shard_bytes(t->destination, run->destination_shard));
                for (uint32_t b = 0; b < run->bytes; b++) {
                    uint64_t *from = &t->from[run->destination_shard][d + b];
                    assert_int_equal(*from, 0);
                    *from = ((uint64_t)run->source_shard << 32 | (uint64_t)(s + b)) + 1;
                    t->bytes++;
                }
            }
}

static void check_copy(const TensorType *source, const TensorType *destination, const Mapping *m)
{
    Target target = {.source = source, .destination = destination};
    uint32_t shards = type_shard_count(destination);
    target.from = calloc(shards, sizeof *target.from);
    for (uint32_t s = 0; s < shards; s++)
        target.from[s] = calloc(type_shard_bytes(destination, s) + 1, sizeof **target.from);
    assert_ok(type_copy_runs(source, destination, m, apply_run, &target));

    uint32_t index[MAX_RANK] = {0}, from[MAX_RANK], element;
    uint64_t expected = 0;
    element = precision_bytes(source->format.precision);
    do {
        uint32_t shard = 0, source_shard = 0;
        if (!map_index(m, index, from))
            continue;
        uint64_t d = find_element(destination, index, &shard);
        uint64_t s = find_element(source, from, &source_shard);
        for (uint32_t b = 0; b < element; b++)
            assert_int_equal(target.from[shard][d + b],
                             ((uint64_t)source_shard << 32 | (s + b)) + 1);
        expected += element;
    } while (next_index(&destination->shape, index));
    assert_int_equal(target.bytes, expected);
    for (uint32_t s = 0; s < shards; s++)
        free(target.from[s]);
    free(target.from);
}

/* A random chain of one to three steps from a shape, composed. */
static Mapping random_mapping(const Shape *source, Shape *out)
{
    Shape shape = *source;
    Mapping mapping = mapping_identity(source);
    uint32_t steps = random_below(5);
    for (uint32_t i = 0; i < steps; i++) {
        Mapping next, composed;
        Shape next_shape = shape;
        uint32_t axis = random_below(shape.rank), other = random_below(shape.rank);
        switch (random_below(5)) {
        case 0:
            next_shape.extent[axis] = 1 + random_below(shape.extent[axis]);
            next = mapping_slice(&shape, axis,
                                 random_below(shape.extent[axis] - next_shape.extent[axis] + 1),
                                 next_shape.extent[axis]);
            break;
        case 1:
            for (uint32_t a = 0; a < shape.rank; a++)
                if (shape.extent[a] == 1 && random_below(2))
                    next_shape.extent[a] = 1 + random_below(5);
            if (shape.rank < 4 && random_below(2)) {
                for (uint32_t a = next_shape.rank++; a > 0; a--)
                    next_shape.extent[a] = next_shape.extent[a - 1];
                next_shape.extent[0] = 1 + random_below(3);
            }
            assert_ok(mapping_broadcast(&shape, &next_shape, &next));
            break;
        default: {
            uint32_t factor = 1 + random_below(4);
            bool reversed = random_below(2);
            if (axis == other || status_discard(mapping_view(&shape, axis, other, factor, reversed,
                                                             &next_shape, &next)))
                continue;
            if (shape_elements(&next_shape) > 4000)
                continue;
        }
        }
        if (status_discard(mapping_compose(&mapping, &next, &composed)))
            continue; /* not expressible: allowed */
        mapping = composed;
        shape = next_shape;
    }
    *out = shape;
    return mapping;
}

static void random_copies(void **state)
{
    (void)state;
    uint32_t multi = 0;
    for (uint32_t i = 0; i < 4000; i++) {
        Shape shape = random_shape(4, 24), result;
        for (uint32_t a = 0; a < shape.rank && i % 2; a++) /* factors for views */
            shape.extent[a] = a + 2 < shape.rank ? 2 : 2 * (1 + random_below(12));
        Mapping mapping = random_mapping(&shape, &result);
        uint8_t precision = (uint8_t)random_below(3);
        TensorType source = random_type(shape, precision);
        TensorType destination = random_type(result, precision);
        for (uint32_t a = 0; a < mapping.source_rank; a++)
            multi += mapping.source[a].count > 1;
        check_copy(&source, &destination, &mapping);
    }
    print_message("%u axes of several atoms\n", multi);
    assert_true(multi > 200); /* views of several atoms were among them */
}

/* Compositions against applying one mapping after the other. */
static void compositions(void **state)
{
    (void)state;
    uint32_t good = 0;
    for (uint32_t i = 0; i < 3000; i++) {
        Shape shape = random_shape(4, 24), middle, result;
        Mapping first = random_mapping(&shape, &middle), second = random_mapping(&middle, &result);
        Mapping both;
        if (status_discard(mapping_compose(&first, &second, &both)))
            continue;
        good++;
        uint32_t index[MAX_RANK] = {0}, between[MAX_RANK], expected[MAX_RANK], got[MAX_RANK];
        do {
            assert_true(map_index(&second, index, between));
            assert_true(map_index(&first, between, expected));
            assert_true(map_index(&both, index, got));
            assert_memory_equal(got, expected, shape.rank * sizeof *got);
        } while (next_index(&result, index));
    }
    assert_true(good > 2000);
}

/* Heads of a QKV product: slice, split, and back. */
static void heads(void **state)
{
    (void)state;
    Shape qkv = {3, {1, 5, 432}}, slice = {3, {1, 5, 144}}, split, joined;
    Mapping cut = mapping_slice(&qkv, 2, 144, 144), view, all, back;
    assert_ok(mapping_view(&slice, 2, 0, 2, false, &split, &view));
    assert_true(shape_equal(&split, &(Shape){3, {2, 5, 72}}));
    assert_ok(mapping_compose(&cut, &view, &all));
    assert_int_equal(all.source[2].offset, 144);
    assert_ok(mapping_view(&split, 2, 0, 2, true, &joined, &back));
    assert_true(shape_equal(&joined, &slice));
    assert_ok(mapping_compose(&view, &back, &all));
    assert_true(mapping_is_identity(&all));
    assert_true(status_discard(mapping_view(&slice, 2, 0, 5, false, &split, &view)));
    assert_true(status_discard(mapping_view(&slice, 2, 2, 2, false, &split, &view)));
    assert_true(status_discard(mapping_broadcast(&slice, &qkv, &view)));
}

/* Whole panels move as one run: nothing is cut that is contiguous on both sides. */
static void count_run(void *context, const CopyRun *run)
{
    Target *t = context;
    t->runs++;
    t->bytes += (uint64_t)run->bytes * run->count[0] * run->count[1] * run->count[2];
}

static Target count_copy(const TensorType *source, const TensorType *destination)
{
    Target target = {0};
    Mapping mapping = mapping_identity(&source->shape);
    assert_ok(type_copy_runs(source, destination, &mapping, count_run, &target));
    return target;
}

static void maximal(void **state)
{
    (void)state;
    Format left = {.order = {ORDER_LEFT}, .tile_count = 1, .replicas = 1};
    TensorType a = {{2, {8, 64}}, left}, b = a;
    assert_int_equal(count_copy(&a, &b).runs, 1);
    b.format.tile_count = 4;
    b.format.axis_count = 1;
    b.format.axes[0] = (AxisTiling){1, false, 4, .block = 16}; /* a panel per tile */
    assert_int_equal(count_copy(&a, &b).runs, 4);
    b.format.axes[0] = (AxisTiling){0, false, 4, .block = 2}; /* rows: panels are a count */
    assert_int_equal(count_copy(&a, &b).runs, 4);
    TensorType linear_a = {
        {2, {3, 100}},
        {.tile_count = 4, .replicas = 1, .axis_count = 1, .axes = {{AXIS_LINEAR, false, 4}}}};
    TensorType linear_b = linear_a;
    linear_b.format.tile_count = linear_b.format.axes[0].partitions = 5;
    assert_int_equal(count_copy(&linear_a, &linear_b).runs, 8); /* 4 + 5 - 1 ranges meet */
}

/* 729 x 4304 between row-major linear over 1,472 tiles and a blocked grid. */
static void large_retile(void **state)
{
    (void)state;
    static const uint8_t orders[] = {ORDER_LEFT, ORDER_TRANSPOSED_LEFT, ORDER_BLOCK_MAJOR};
    TensorType linear = {{2, {729, 4304}},
                         {.tile_count = 1472,
                          .replicas = 1,
                          .axis_count = 1,
                          .axes = {{AXIS_LINEAR, false, 1472, .block = 4}}}};
    for (uint32_t i = 0; i < countof(orders); i++) {
        TensorType grid = {{2, {729, 4304}},
                           {.order = {orders[i], 16, 16},
                            .tile_count = 1440,
                            .replicas = 1,
                            .axis_count = 2,
                            .axes = {{1, true, 120, .block = 16}, {0, true, 12, .block = 16}}}};
        double start = seconds_now();
        Target to = count_copy(&linear, &grid);
        double middle = seconds_now();
        Target from = count_copy(&grid, &linear);
        double end = seconds_now();
        print_message("order %u: %llu runs in %.1f ms, back %llu in %.1f ms\n", orders[i],
                      (unsigned long long)to.runs, (middle - start) * 1e3,
                      (unsigned long long)from.runs, (end - middle) * 1e3);
        assert_int_equal(to.bytes, 729 * 4304 * 2);
        assert_int_equal(from.bytes, 729 * 4304 * 2);
        assert_true(to.runs < 200000 && from.runs < 200000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_copies), cmocka_unit_test(compositions), cmocka_unit_test(heads),
        cmocka_unit_test(maximal),       cmocka_unit_test(large_retile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
