/* tile_interpreter.h - runs a tile program on the host: buffers are byte arrays, transfers are
 * memcpy, kernel calls are kernel_reference. What comes out must be what the graph computes: that
 * proves plan, mid and tile without machine code.
 *
 * Memory that the image does not define is filled with NaN, so that a read of it shows. */
#ifndef IPU_TESTS_TILE_INTERPRETER_H
#define IPU_TESTS_TILE_INTERPRETER_H

#include "check.h"
#include "tile/tile.h"

#include <math.h>
#include <string.h>

/* ---- test data: every input and parameter by name ---- */

typedef struct TestData {
    Map names; /* -> index in arrays */
    ARRAY(double *) arrays;
} TestData;

static double test_random(uint64_t *seed) /* -1 .. 1 */
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(*seed >> 11) / (double)(1ull << 52) - 1.0;
}

/* Values are halves exactly. Matrices have variance 1 / fan-in, scales are near one. */
static void test_data_make(TestData *data, const Graph *graph, uint64_t seed)
{
    memset(data, 0, sizeof *data);
    for (uint32_t v = 0; v < graph->values.count; v++) {
        const Value *value = &graph->values.items[v];
        if (value->kind != VALUE_INPUT && value->kind != VALUE_PARAMETER)
            continue;
        size_t n = (size_t)shape_elements(&value->shape);
        double *array = xcalloc(n, sizeof *array), scale = 1, offset = 0;
        if (value->kind == VALUE_PARAMETER && value->shape.rank == 2)
            scale = sqrt(3.0 / value->shape.extent[0]);
        if (strstr(value->name, "scale"))
            scale = 0.25, offset = 1;
        if (strstr(value->name, "bias"))
            scale = 0.5;
        for (size_t i = 0; i < n; i++)
            array[i] = half_to_float(half_from_double(offset + scale * test_random(&seed)));
        *map_at_text(&data->names, value->name, NULL) = data->arrays.count;
        array_push(&data->arrays, array);
    }
}

static const double *test_data_find(void *context, const char *name)
{
    TestData *data = context;
    const uint64_t *index = map_find_text(&data->names, name);
    return index ? data->arrays.items[*index] : NULL;
}

static void test_data_free(TestData *data)
{
    for (size_t i = 0; i < data->arrays.count; i++)
        free(data->arrays.items[i]);
    array_free(&data->arrays);
    map_free(&data->names);
}

/* ---- the machine ---- */

typedef struct Machine {
    const TileProgram *program;
    uint8_t **memory; /* [buffer * tiles + tile], all members */
    uint32_t iteration;
    double cycles; /* kernels and local copies of the slowest tile, between barriers */
    double *busy;  /* per tile since the last barrier */
    uint32_t phases;
} Machine;

static void machine_make(Machine *m, const TileProgram *program)
{
    *m = (Machine){.program = program};
    m->memory = xcalloc(program->buffers.count * program->tiles + 1, sizeof *m->memory);
    m->busy = xcalloc(program->tiles, sizeof *m->busy);
    for (size_t b = 0; b < program->buffers.count; b++)
        for (uint32_t t = 0; t < program->tiles; t++) {
            const Buffer *buffer = &program->buffers.items[b];
            size_t bytes = (size_t)buffer->bytes[t] * buffer->members;
            if (bytes == 0)
                continue;
            m->memory[b * program->tiles + t] = xmalloc(bytes);
            memset(m->memory[b * program->tiles + t], buffer->resident ? 0 : 0x7e, bytes);
        }
}

static void machine_free(Machine *m)
{
    for (size_t i = 0; i < m->program->buffers.count * m->program->tiles; i++)
        free(m->memory[i]);
    free(m->memory);
    free(m->busy);
}

static uint8_t *machine_at(const Machine *m, uint32_t tile, BufferRef ref)
{
    const Buffer *buffer = &m->program->buffers.items[ref.buffer];
    uint32_t member = buffer->members > 1 ? m->iteration : 0;
    return m->memory[ref.buffer * m->program->tiles + tile] + (size_t)member * buffer->bytes[tile] +
           ref.offset;
}

static void machine_barrier(Machine *m)
{
    double longest = 0;
    for (uint32_t t = 0; t < m->program->tiles; t++) {
        longest = m->busy[t] > longest ? m->busy[t] : longest;
        m->busy[t] = 0;
    }
    m->cycles += longest;
}

static void machine_exchange(Machine *m, const ExchangePhase *phase)
{
    uint32_t *load = xcalloc(2 * m->program->tiles, sizeof *load), words = 0;
    for (uint32_t i = 0; i < phase->transfer_count; i++) {
        const Transfer *t = &phase->transfers[i];
        load[t->source.tile] += t->words;
        for (uint32_t r = 0; r < t->receiver_count; r++) {
            const Endpoint *to = &phase->receivers[t->first_receiver + r];
            memcpy(machine_at(m, to->tile, to->at), machine_at(m, t->source.tile, t->source.at),
                   t->words * 4u);
            load[m->program->tiles + to->tile] += t->words;
        }
    }
    for (uint32_t t = 0; t < 2 * m->program->tiles; t++)
        words = max_u32(words, load[t]);
    free(load);
    machine_barrier(m);
    m->cycles += target_phase_cost(words, 1);
    m->phases++;
}

static void machine_calls(Machine *m, const Step *step)
{
    for (uint32_t c = 0; c < step->count; c++) {
        const CallClass *class = &m->program->classes.items[step->first + c];
        KernelContract contract;
        assert_ok(kernel_contract(&class->spec, &contract));
        for (uint32_t r = 0; r < class->range_count; r++)
            for (uint32_t t = class->ranges[r].first; t <= class->ranges[r].last; t++) {
                void *operands[KERNEL_OPERANDS];
                for (uint32_t i = 0; i < contract.operand_count; i++)
                    operands[i] = machine_at(m, t, class->operands[i]);
                assert_ok(kernel_reference(&class->spec, operands));
                m->busy[t] += (double)kernel_cycles(&class->spec);
            }
    }
}

static void machine_copies(Machine *m, const Step *step)
{
    for (uint32_t i = 0; i < step->count; i++) {
        const LocalCopy *c = &m->program->copies.items[step->first + i];
        uint8_t *out = machine_at(m, c->tile, c->out), *in = machine_at(m, c->tile, c->in);
        for (uint32_t r = 0; r < c->rows; r++)
            memmove(out + r * c->out_pitch, in + r * c->in_pitch, c->row_bytes);
        KernelSpec spec = {.family = KERNEL_COPY};
        spec.p[COPY_ROWS] = (int32_t)c->rows;
        spec.p[COPY_ROW_BYTES] = (int32_t)c->row_bytes;
        spec.p[COPY_OUT_PITCH] = (int32_t)c->out_pitch;
        spec.p[COPY_IN_PITCH] = (int32_t)c->in_pitch;
        m->busy[c->tile] += (double)kernel_cycles(&spec);
    }
}

static void machine_run(Machine *m)
{
    size_t start = 0;
    uint32_t left = 0;
    for (size_t i = 0; i < m->program->steps.count; i++) {
        const Step *step = &m->program->steps.items[i];
        switch (step->kind) {
        case STEP_CALL:
            machine_calls(m, step);
            break;
        case STEP_COPY:
            machine_copies(m, step);
            break;
        case STEP_EXCHANGE:
            machine_exchange(m, &m->program->phases.items[step->first]);
            break;
        case STEP_REPEAT:
            start = i;
            left = step->count;
            m->iteration = 0;
            break;
        default:
            if (--left > 0) {
                m->iteration++;
                i = start;
            } else {
                m->iteration = 0;
            }
        }
    }
    machine_barrier(m);
}

/* ---- host side ---- */

static void machine_load(Machine *m, const Mid *mid, const Graph *graph, TestData *data)
{
    for (uint32_t v = 0; v < mid->values.count; v++) {
        const MidValue *value = mid_value(mid, v);
        if (value->role != BUFFER_PARAMETER && value->role != BUFFER_INPUT)
            continue;
        uint32_t b = 0;
        MidId root = mid_root(mid, v); /* another one for shares of an operand */
        while (b < m->program->buffers.count && m->program->buffers.items[b].value != root)
            b++;
        if (b == m->program->buffers.count)
            continue; /* nobody reads it */
        size_t n = (size_t)shape_elements(&value->type.shape);
        uint16_t *halves = xcalloc(n, sizeof *halves);
        for (uint32_t member = 0; member < value->members; member++) {
            const Value *from = &graph->values.items[value->member_values[member]];
            const double *array = test_data_find(data, from->name);
            assert_non_null(array);
            for (size_t i = 0; i < n; i++)
                halves[i] = half_from_double(array[i]);
            for (uint32_t t = 0; t < m->program->tiles; t++) {
                int32_t shard = type_shard_of_tile(&value->type, t);
                uint8_t *at = m->memory[b * m->program->tiles + t];
                if (shard >= 0 && at)
                    type_pack_shard(&value->type, (uint32_t)shard, halves,
                                    at + mid_offset(mid, v, (uint32_t)shard) +
                                        (size_t)member * m->program->buffers.items[b].bytes[t]);
            }
        }
        free(halves);
    }
}

static double *machine_output(const Machine *m, const Mid *mid, const char *name)
{
    for (uint32_t v = (uint32_t)mid->values.count; v-- > 0;) {
        const MidValue *value = mid_value(mid, v);
        if (value->role != BUFFER_OUTPUT || strcmp(value->name, name) != 0)
            continue;
        size_t n = (size_t)shape_elements(&value->type.shape);
        uint16_t *halves = xmalloc(n * sizeof *halves);
        memset(halves, 0x7e, n * sizeof *halves);
        MidId root = mid_root(mid, v);
        uint32_t b = 0;
        while (m->program->buffers.items[b].value != root)
            b++;
        for (uint32_t t = 0; t < m->program->tiles; t++) {
            int32_t shard = type_shard_of_tile(&value->type, t);
            Region region;
            if (shard >= 0 && type_shard_region(&value->type, (uint32_t)shard, &region))
                type_unpack_shard(&value->type, (uint32_t)shard,
                                  m->memory[b * m->program->tiles + t] +
                                      mid_offset(mid, v, (uint32_t)shard),
                                  halves);
        }
        double *out = xcalloc(n, sizeof *out);
        for (size_t i = 0; i < n; i++)
            out[i] = half_to_float(halves[i]);
        free(halves);
        return out;
    }
    fail_msg("no output %s", name);
    return NULL;
}

typedef struct TileRun {      /* what a whole check measured */
    double predicted, cycles; /* of the plan; of the interpreter (kernels and estimated phases) */
    double error;             /* relative RMS, the worst output */
    uint32_t phases, grouped, merged, removed;
    double plan_seconds, lower_seconds;
} TileRun;

/* Plans, lowers, rewrites, expands, checks every representation, runs, compares. change: makes
 * another recipe for the same graph, or NULL. */
typedef void ChangeRecipe(const Graph *graph, Recipe *recipe);
static inline TileRun check_changed(const Graph *graph, const PlanOptions *options, bool rewrite,
                                    double tolerance, ChangeRecipe *change)
{
    Arena arena = {0};
    TestData data;
    Recipe *recipes;
    uint32_t count;
    TileRun run = {0};
    test_data_make(&data, graph, options->tiles + 17);
    assert_ok(graph_check(graph));
    double start = seconds_now();
    assert_ok(plan_search(&arena, graph, options, NULL, &recipes, &count));
    run.plan_seconds = seconds_now() - start;
    assert_true(count > 0);
    run.predicted = recipes[0].predicted_cycles;
    if (change)
        change(graph, &recipes[0]);
    assert_ok(recipe_check(graph, &recipes[0]));
    Mid mid;
    start = seconds_now();
    assert_ok(mid_lower(&arena, graph, &recipes[0], &mid));
    assert_ok(mid_check(&mid));
    if (rewrite) {
        run.grouped = mid_group_exchanges(&mid);
        assert_ok(mid_check(&mid));
        run.merged = mid_merge_copies(&mid);
        assert_ok(mid_check(&mid));
        run.removed = mid_eliminate(&mid);
        assert_ok(mid_check(&mid));
    }
    TileProgram program;
    assert_ok(tile_expand(&arena, &mid, &program));
    assert_ok(tile_check(&program));
    run.lower_seconds = seconds_now() - start;
    Machine machine;
    machine_make(&machine, &program);
    machine_load(&machine, &mid, graph, &data);
    machine_run(&machine);
    run.cycles = machine.cycles;
    run.phases = machine.phases;
    double **expected = xcalloc(graph->outputs.count, sizeof *expected);
    assert_ok(graph_evaluate(graph, test_data_find, &data, expected));
    for (uint32_t i = 0; i < graph->outputs.count; i++) {
        const GraphOutput *output = &graph->outputs.items[i];
        size_t n = (size_t)shape_elements(&graph->values.items[output->value].shape);
        double *out = machine_output(&machine, &mid, output->name), sum = 0, square = 0;
        for (size_t k = 0; k < n; k++) {
            sum += (out[k] - expected[i][k]) * (out[k] - expected[i][k]);
            square += expected[i][k] * expected[i][k];
        }
        double error = sqrt(sum / (square > 0 ? square : 1));
        if (!(error <= tolerance))
            fail_msg("%s on %u tiles: relative RMS error %g", output->name, options->tiles, error);
        run.error = error > run.error ? error : run.error;
        free(out);
        free(expected[i]);
    }
    free(expected);
    machine_free(&machine);
    tile_free(&program);
    mid_free(&mid);
    test_data_free(&data);
    arena_free(&arena);
    return run;
}

static inline TileRun check_graph(const Graph *graph, const PlanOptions *options, bool rewrite,
                                  double tolerance)
{
    return check_changed(graph, options, rewrite, tolerance, NULL);
}

#endif
