/* libraries: sim */
/* test_sim_calibration.c - the frozen calibration of supervisor and launch: six synthetic workers
 * and the supervisor loop of a GEMM, as machine code, against the model that fits the card. Nobody
 * changes these figures without evidence and a decision page. */
#include "sim_program.h"

enum {
    TABLES = 0x60000,
    SCHEDULE = 0x61000,
    TARGETS = 0x62000,
    WEIGHTS = 0x80000,
    MAX_PANELS = 64
};
enum { CALL_AND_SAMPLING = 248 };

typedef struct Case {
    uint32_t inner_step; /* F16: 16, F8: 32 */
    uint32_t rows, inner, columns;
    uint32_t a[3]; /* bundles beside 4 a row: first panel of the call, of a column block, other */
    uint32_t published, model;
} Case;

#define AFTER                                                                                      \
    {                                                                                              \
        32, 17, 15                                                                                 \
    }
#define BEFORE                                                                                     \
    {                                                                                              \
        31, 19, 18                                                                                 \
    }
static const Case CASES[] = {
    {32, 122, 160, 128, BEFORE, 26886, 27023}, {32, 122, 160, 128, AFTER, 26232, 26369},
    {32, 146, 96, 48, BEFORE, 7248, 7211},     {32, 146, 96, 48, AFTER, 7122, 7085},
    {16, 56, 64, 80, AFTER, 8076, 8093},       {32, 57, 128, 80, BEFORE, 8436, 8406},
    {32, 57, 128, 80, AFTER, 8124, 8094},      {16, 81, 80, 80, BEFORE, 12804, 12816},
    {16, 81, 80, 80, AFTER, 12402, 12414},     {32, 244, 128, 64, BEFORE, 18822, 18739},
    {32, 244, 128, 64, AFTER, 18576, 18493},   {32, 82, 192, 160, BEFORE, 30510, 30451},
    {32, 82, 192, 160, AFTER, 29508, 29449},
};

static uint32_t worker_rows(const Case *shape, uint32_t worker)
{
    return shape->rows / 6 + (worker < shape->rows % 6);
}

static uint32_t panel_kind(const Case *shape, uint32_t panel)
{
    uint32_t per_block = shape->inner / shape->inner_step;
    return panel == 0 ? 0 : panel % per_block == 0 ? 1 : 2;
}

static uint32_t panel_count(const Case *shape)
{
    return shape->inner / shape->inner_step * (shape->columns / 16);
}

/* --- the model, written out from its definition and independent of the simulator */

typedef struct Model {
    uint64_t first[6], last[6]; /* issue cycles of each worker's bundles in the running panel */
    bool launched;
    int64_t end; /* E */
} Model;

static uint64_t slot(const Model *model, uint64_t t)
{
    for (;; t++) {
        uint32_t worker = (uint32_t)(t % 6);
        if (!model->launched || model->last[worker] < t)
            return t;
    }
}

static void model_launch(Model *model, const Case *shape, uint32_t kind, uint64_t u)
{
    model->launched = true;
    model->end = 0;
    for (uint32_t w = 0; w < 6; w++) {
        uint64_t first = u + 12;
        while (first % 6 != w)
            first++;
        uint64_t bundles = shape->a[kind] + 4 * worker_rows(shape, w);
        model->last[w] = first + 6 * (bundles - 1);
        if ((int64_t)model->last[w] > model->end)
            model->end = (int64_t)model->last[w];
    }
}

static uint64_t model_wait(const Model *model, uint64_t t)
{
    uint64_t soonest = slot(model, t) + 1, joined = (uint64_t)(model->end + 14);
    return soonest > joined ? soonest : joined;
}

static uint64_t model_cycles(const Case *shape)
{
    Model model = {.end = -1};
    uint64_t t = 0;
    for (uint32_t panel = 0; panel < panel_count(shape); panel++) {
        t = model_wait(&model, t);
        for (int load = 0; load < 32; load++)
            t = slot(&model, t) + 1;
        uint64_t u = slot(&model, t);
        model_launch(&model, shape, panel_kind(shape, panel), u);
        uint64_t t0 = slot(&model, u + 1), t1 = slot(&model, t0 + 1), t2 = slot(&model, t1 + 1);
        uint64_t t3 = slot(&model, t2 + 6), t4 = slot(&model, t3 + 6);
        t = t4 + 8;
    }
    return model_wait(&model, t) + CALL_AND_SAMPLING;
}

/* --- the same as machine code */

/* A worker with n rows issues a + 4 n bundles, its exit included: 3 to find its count, count + 1 of
 * the loop, the exit. */
static void load_workers(Sim *sim, const Case *shape)
{
    Program code = {.address = WORKER_CODE};
    EMIT(&code, get_mmmn_zi, 0, 1); /* WSR */
    EMIT(&code, and_mmmn_zi, 0, 0, 7);
    EMIT(&code, ld32_mmmn, 13, MZERO, 0, 1);
    EMIT(&code, brnzdec_mmmn_zi, 1, WORKER_CODE + 12);
    EMIT(&code, exitz_mmmn, MZERO);
    load_program(sim, 0, &code);
    for (uint32_t kind = 0; kind < 3; kind++)
        for (uint32_t w = 0; w < 6; w++)
            poke(sim, 0, TABLES + 32 * kind + 4 * w,
                 shape->a[kind] + 4 * worker_rows(shape, w) - 5);
}

/* The loop is left through the table of branch targets, so that every branch is a taken one.
 * m0 entry, m1 vertex base, m6 and m7 the tables of what comes next. Answers where the time is
 * taken. */
static uint32_t load_supervisor(Sim *sim, const Case *shape)
{
    Program code = {.address = CODE};
    EMIT(&code, sync, 2);
    for (int entry = 0; entry < 32; entry++)
        EMIT(&code, ld64putcs_mmmn_zi, entry);
    EMIT(&code, runall_mmmn_zi, 0, 1, 0);
    EMIT(&code, ld32step_mmmn_si, MZERO, 6, 1, 1);
    EMIT(&code, add_mmmn_si, 3, 3, 1);
    EMIT(&code, ld32step_mmmn_si, MZERO, 7, 1, 4);
    EMIT(&code, or_mmmn_zi, 5, 4, 0);
    EMIT(&code, br_mmmn, 5);
    uint32_t out = EMIT(&code, sync, 2);
    uint32_t mark = emit(&code, NOP);
    emit_completion(&code);
    load_program(sim, 0, &code);
    uint32_t panels = panel_count(shape);
    assert_in_range(panels, 1, MAX_PANELS);
    for (uint32_t panel = 0; panel < panels; panel++) {
        bool last = panel + 1 == panels;
        poke(sim, 0, SCHEDULE + 4 * panel, TABLES + (last ? 0 : 32 * panel_kind(shape, panel + 1)));
        poke(sim, 0, TARGETS + 4 * panel, last ? out : CODE);
    }
    return mark;
}

static uint64_t simulated_cycles(const Case *shape)
{
    Sim *sim = one_tile();
    load_workers(sim, shape);
    uint32_t mark = load_supervisor(sim, shape);
    SimContext context;
    sim_get_context(sim, 0, 0, &context);
    context.m[0] = WORKER_CODE;
    context.m[1] = TABLES;
    context.m[6] = SCHEDULE;
    context.m[7] = TARGETS;
    context.csr[0x50] = WEIGHTS; /* CCCSLOAD */
    sim_set_context(sim, 0, 0, &context);
    sim_set_entry(sim, 0, CODE);
    sim_watch(sim, 0, mark);
    SimStop stop = sim_run(sim);
    if (stop != SIM_COMPLETE)
        fail_msg("%s", sim_fault(sim)->message);
    uint64_t cycle;
    assert_true(sim_watched(sim, 0, &cycle));
    uint64_t expected = 0;
    for (uint32_t panel = 0; panel < panel_count(shape); panel++)
        for (uint32_t w = 0; w < 6; w++)
            expected += shape->a[panel_kind(shape, panel)] + 4 * worker_rows(shape, w);
    assert_int_equal(sim_counts(sim).worker_bundles, expected);
    sim_destroy(sim);
    return cycle + CALL_AND_SAMPLING;
}

static void simulator_gives_the_model_column_exactly(void **state)
{
    (void)state;
    for (size_t i = 0; i < countof(CASES); i++) {
        assert_int_equal(model_cycles(&CASES[i]), CASES[i].model);
        assert_int_equal(simulated_cycles(&CASES[i]), CASES[i].model);
    }
}

static void model_is_within_six_tenths_of_a_percent_of_the_card(void **state)
{
    (void)state;
    for (size_t i = 0; i < countof(CASES); i++) {
        double error = (double)CASES[i].model / CASES[i].published - 1;
        assert_true(error > -0.006 && error < 0.006);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(simulator_gives_the_model_column_exactly),
        cmocka_unit_test(model_is_within_six_tenths_of_a_percent_of_the_card),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
