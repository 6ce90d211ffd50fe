/* libraries: sim */
/* test_sim_float_rules.c - rules that hold for every form of the auxiliary lane, on random states:
 * precise exceptions, registers that stay zero, draws, control registers. */
#include "check.h"

#include "float_case.h"
#include "sim/float_impl.h"

static void random_weights(Weights *weights, Random *random)
{
    for (uint32_t i = 0; i < 64; i++)
        weights_write(weights, i,
                      random_half(random) | (uint64_t)random_half(random) << 16 |
                          (uint64_t)random_half(random) << 32 |
                          (uint64_t)random_half(random) << 48);
}

/* With an event whose enable bit is set: exception 5, FP_STS tells the event, all else is as
 * before. Without: the same as with all enables clear. High registers read 0 whatever happens. */
static void exceptions_are_precise(void **test)
{
    (void)test;
    Random random = {21};
    Weights *weights = xcalloc(1, sizeof *weights);
    unsigned taken[8] = {0}, forms = 0;
    for (int f = 1; f < FORM_COUNT; f++) {
        FloatExecute *execute = float_handler((Form)f);
        if (!execute || f == FORM_uput_aaan_zi) /* may write what the check looks at */
            continue;
        forms++;
        for (unsigned round = 0; round < 1500; round++) {
            if (round % 100 == 0)
                random_weights(weights, &random);
            int32_t operand[ISA_OPERANDS] = {0};
            random_operands(&random, (Form)f, operand);
            FloatState start = random_float_state(&random);
            start.status = (uint32_t)random_next(&random) & 7;
            FloatState quiet = start, state = start;
            quiet.status = 0; /* shows the flags of this issue */
            uint32_t enables = (uint32_t)random_next(&random) & 7;
            state.control |= enables;
            FloatState armed = state;
            uint32_t first = execute(&quiet, weights, operand);
            uint32_t exception = execute(&state, weights, operand);
            uint32_t events = f == FORM_uget_aaan_zi ? 0 : quiet.status;
            if (first == 9) {
                assert_int_equal(exception, 9);
                assert_memory_equal(&state, &armed, sizeof state);
                continue;
            }
            assert_int_equal(first, 0);
            assert_int_equal(exception, events & enables ? 5 : 0);
            assert_int_equal(state.status, start.status | events);
            for (unsigned i = 8; i < 16; i++)
                assert_int_equal(state.a[i] | quiet.a[i], 0);
            FloatState wanted = exception ? armed : quiet;
            wanted.status = state.status;
            wanted.control = state.control;
            if (f != FORM_uget_aaan_zi && memcmp(&state, &wanted, sizeof state))
                fail_msg("%s: changed by an exception, or by enables", isa_form((Form)f)->name);
            taken[exception ? events & enables : 0]++;
        }
    }
    assert_true(forms > 200 && taken[1] > 1000 && taken[2] > 10 && taken[4] > 100);
    free(weights);
}

/* Handlers for all kinds of hosts give the same bits. */
static void hosts_agree(void **test)
{
    (void)test;
    Random random = {25};
    Weights *weights = xcalloc(1, sizeof *weights);
    for (int f = 1; f < FORM_COUNT; f++) {
        FloatExecute *portable = float_handler_for((Form)f, HOST_PORTABLE);
        for (unsigned round = 0; round < 1000 && portable; round++) {
            if (round % 100 == 0)
                random_weights(weights, &random);
            int32_t operand[ISA_OPERANDS] = {0};
            random_operands(&random, (Form)f, operand);
            FloatState start = random_float_state(&random), plain = start;
            start.control |= plain.control |= round % 8 ? 0 : 7;
            uint32_t exception = portable(&plain, weights, operand);
            for (int host = HOST_AVX2; host <= (int)float_host(); host++) {
                FloatExecute *execute = float_handler_for((Form)f, (Host)host);
                FloatState state = start;
                assert_int_equal(execute(&state, weights, operand), exception);
                if (memcmp(&state, &plain, sizeof state))
                    fail_msg("%s, host %d", isa_form((Form)f)->name, host);
            }
        }
    }
    free(weights);
}

/* Operands and control values that no program can have still hurt nothing. */
static void wild_operands_are_harmless(void **test)
{
    (void)test;
    Random random = {26};
    Weights *weights = xcalloc(1, sizeof *weights);
    for (int f = -2; f < FORM_COUNT + 2; f++) {
        FloatExecute *execute = float_handler((Form)f);
        for (unsigned round = 0; round < 200 && execute; round++) {
            FloatState state = random_float_state(&random);
            weights_write(weights, (uint32_t)random_next(&random), random_next(&random));
            state.formats = (uint32_t)random_next(&random);
            state.scale = (uint32_t)random_next(&random);
            state.control = (uint32_t)random_next(&random);
            int32_t operand[ISA_OPERANDS];
            for (unsigned i = 0; i < ISA_OPERANDS; i++)
                operand[i] = (int32_t)random_next(&random) >> (random_next(&random) & 31);
            uint32_t exception = execute(&state, weights, operand);
            assert_true(exception == 0 || exception == 5 || exception == 9);
            for (unsigned i = 8; i < 16; i++)
                assert_int_equal(state.a[i], 0);
        }
    }
    free(weights);
}

/* How many draws an issue makes: with ESR clear, and set. */
static unsigned draws_of(Form form, bool stochastic)
{
    switch ((int)form) {
    case FORM_urand32_aaan:
    case FORM_urand64_aaan:
    case FORM_f16v4rmask_aaan:
    case FORM_f32v2rmask_aaan:
        return 1;
    case FORM_f16v2grand_aaan:
    case FORM_f32v2grand_aaan:
        return 2;
    case FORM_f16v8tof8_aaan:
        return stochastic ? 2 : 0;
    case FORM_f32tof16_aaan:
    case FORM_f32v2tof16_aaan:
    case FORM_f32v4tof16_aaan:
    case FORM_f16v2tof8_aaan:
    case FORM_f16v2gina_aaan_zi:
    case FORM_f16v4gacc_aaan:
    case FORM_f16v4mix_aaan:
    case FORM_f16v4hihoamp_aaan_ef:
    case FORM_f16v4sihoamp_aaan_ef:
    case FORM_f16v4hihov4amp_aaan_ef:
    case FORM_f8v8hihov4amp_aaan_ef:
    case FORM_f16v4hihoslic_aaan_ef:
    case FORM_f16v4sihoslic_aaan_ef:
    case FORM_f16v4hihov4slic_aaan_ef:
    case FORM_f8v8hihov4slic_aaan_ef:
        return stochastic ? 1 : 0;
    default:
        return 0;
    }
}

static void forms_draw_as_listed(void **test)
{
    (void)test;
    Random random = {22};
    Weights *weights = xcalloc(1, sizeof *weights);
    random_weights(weights, &random);
    FloatExecute *urand64 = float_handler(FORM_urand64_aaan);
    for (int f = 1; f < FORM_COUNT; f++) {
        FloatExecute *execute = float_handler((Form)f);
        if (!execute || f == FORM_uput_aaan_zi)
            continue;
        for (unsigned round = 0; round < 60; round++) {
            int32_t operand[ISA_OPERANDS] = {0}, zeros[ISA_OPERANDS] = {14};
            random_operands(&random, (Form)f, operand);
            FloatState state = random_float_state(&random), expected = state;
            if (execute(&state, weights, operand) != 0)
                continue;
            unsigned draws = draws_of((Form)f, state.control >> 19 & 1);
            for (unsigned i = 0; i < draws; i++)
                urand64(&expected, weights, zeros);
            if (memcmp(state.prng, expected.prng, sizeof state.prng))
                fail_msg("%s: not %u draws", isa_form((Form)f)->name, draws);
        }
    }
    free(weights);
}

static void run1(FloatState *state, Form form, int32_t a, int32_t b)
{
    int32_t operand[ISA_OPERANDS] = {a, b};
    assert_int_equal(float_handler(form)(state, NULL, operand), 0);
}

static void control_registers(void **test)
{
    (void)test;
    FloatState state = {0};
    /* Register, written, read back. */
    static const uint32_t CASES[][3] = {
        {0, 7, 0},                   /* FP_STS ignores */
        {1, 0xffffffff, 0},          /* FP_CLR reads 0 */
        {2, 0xffffffff, 0x001f0007}, /* FP_CTL */
        {3, 0x12345678, 0x12345678},
        {6, 0x9abcdef0, 0x9abcdef0},
        {7, 0xffffffff, 0}, /* PRNG_SEED */
        {8, 0xdeadbeef, 0xdeadbeef},
        {9, 0xfffffffe, 2},  /* FP_NFMT */
        {10, 0xffffffc1, 1}, /* FP_SCL */
    };
    for (size_t i = 0; i < countof(CASES); i++) {
        state.a[1] = CASES[i][1];
        run1(&state, FORM_uput_aaan_zi, 1, (int32_t)CASES[i][0]);
        run1(&state, FORM_uget_aaan_zi, 2, (int32_t)CASES[i][0]);
        assert_int_equal(state.a[2], CASES[i][2]);
    }
    for (int32_t index = 11; index < 256; index++) {
        FloatState before = state;
        int32_t operand[] = {1, index};
        assert_int_equal(float_handler(FORM_uput_aaan_zi)(&state, NULL, operand), 9);
        assert_int_equal(float_handler(FORM_uget_aaan_zi)(&state, NULL, operand), 9);
        assert_memory_equal(&state, &before, sizeof state);
    }
}

static void launch_takes_the_supervisors_settings(void **test)
{
    (void)test;
    Random random = {23};
    FloatState state = random_float_state(&random), before = state;
    state.status = 7;
    float_launch(&state, 0xffffffff, 0xff, 0xff);
    assert_int_equal(state.status, 0);
    assert_int_equal(state.control, 0x001f0007);
    assert_int_equal(state.formats, 3);
    assert_int_equal(state.scale, 63);
    assert_memory_equal(state.a, before.a, sizeof state.a);
    assert_memory_equal(state.live, before.live, sizeof state.live);
    assert_memory_equal(state.prng, before.prng, sizeof state.prng);
    assert_int_equal(state.tas, before.tas);
}

/* Every lane shape of an operation does in its lanes what the narrowest shape does; broadcasts
 * repeat one element. */
static void shapes_agree(void **test)
{
    (void)test;
    static const struct {
        Form two, four, low2, low4, high2, high4;
    } HALF[] = {
#define SHAPES(name)                                                                               \
    {FORM_f16v2##name##_aaan, FORM_f16v4##name##_aaan, FORM_f16v2##name##_aaal,                    \
     FORM_f16v4##name##_aaal, FORM_f16v2##name##_aaau, FORM_f16v4##name##_aaau}
        SHAPES(add),   SHAPES(sub),   SHAPES(mul),   SHAPES(cmpeq), SHAPES(cmpne),
        SHAPES(cmplt), SHAPES(cmple), SHAPES(cmpgt), SHAPES(cmpge)};
    Random random = {24};
    for (size_t i = 0; i < countof(HALF); i++) {
        for (unsigned round = 0; round < 2000; round++) {
            FloatState start = {0};
            for (unsigned r = 2; r < 6; r++)
                start.a[r] = random_half(&random) | random_half(&random) << 16;
            const Form wide[] = {HALF[i].four, HALF[i].low4, HALF[i].high4};
            const Form narrow[] = {HALF[i].two, HALF[i].low2, HALF[i].high2};
            for (unsigned kind = 0; kind < 3; kind++) {
                FloatState a = start, b = start;
                int32_t all[] = {0, 2, 4}, low[] = {0, 2, 4};
                int32_t high[] = {1, kind ? 2 : 3, 5};
                float_handler(wide[kind])(&a, NULL, all);
                float_handler(narrow[kind])(&b, NULL, low);
                float_handler(narrow[kind])(&b, NULL, high);
                assert_memory_equal(&a, &b, sizeof a);
            }
            uint32_t half = start.a[2] & 0xffff;
            FloatState a = start, b = start;
            b.a[2] = half | half << 16;
            int32_t operand[] = {0, 2, 4};
            float_handler(HALF[i].low2)(&a, NULL, operand);
            float_handler(HALF[i].two)(&b, NULL, operand);
            assert_int_equal(a.a[0], b.a[0]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exceptions_are_precise),
        cmocka_unit_test(hosts_agree),
        cmocka_unit_test(wild_operands_are_harmless),
        cmocka_unit_test(forms_draw_as_listed),
        cmocka_unit_test(control_registers),
        cmocka_unit_test(launch_takes_the_supervisors_settings),
        cmocka_unit_test(shapes_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
