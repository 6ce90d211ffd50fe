/* libraries: sim */
/* test_sim_float_vectors.c - single instructions of the auxiliary lane on given inputs.
 *
 * Every row names inputs and everything that changes; what it does not name must stay. Rows marked
 * "choice" rest on a numbered choice of docs/simulator-float.md, the others on published rules. */
#include "check.h"

#include "float_case.h"

/* Runs one row on one kind of host's handler; returns false with a message. */
static bool run_row(const char *text, const char *inputs, const char *outputs,
                    FloatExecute *execute, const int32_t *operand, char *message, size_t size)
{
    FloatState state = {0};
    Weights *weights = xcalloc(1, sizeof *weights);
    bool good = apply_assignments(inputs, &state, weights);
    FloatState expected = state;
    good &= apply_assignments(outputs, &expected, NULL);
    if (!good) {
        snprintf(message, size, "unreadable row: %s", text);
    } else {
        uint32_t exception = execute(&state, weights, operand);
        char where[96] = "";
        good = exception == 0 && same_state(&state, &expected, where, sizeof where);
        snprintf(message, size, "%s [%s]: exception %u, %s", text, inputs, exception, where);
    }
    free(weights);
    return good;
}

static void rows_give_their_outputs(void **test)
{
    (void)test;
    FILE *file = fopen(SOURCE_DIR "/tests/data/sim/float-vectors.tsv", "r");
    assert_non_null(file);
    static char line[4096];
    unsigned rows = 0, failures = 0;
    assert_non_null(fgets(line, sizeof line, file)); /* heading */
    while (fgets(line, sizeof line, file)) {
        char *rest = line, *text = strsep(&rest, "\t"), *inputs = strsep(&rest, "\t");
        char *outputs = strsep(&rest, "\t"), message[1024];
        assert_non_null(outputs);
        Form form;
        int32_t operand[ISA_OPERANDS] = {0};
        if (!parse_float_insn(text, &form, operand)) {
            print_error("no form: %s\n", text);
            failures++;
            continue;
        }
        rows++;
        if (!run_row(text, inputs, outputs, float_handler(form), operand, message,
                     sizeof message)) {
            print_error("%s\n", message);
            failures++;
        }
    }
    fclose(file);
    assert_int_equal(failures, 0);
    assert_true(rows > 500);
}

static void every_form_has_a_handler(void **test)
{
    (void)test;
    unsigned handlers = 0;
    for (int form = 1; form < FORM_COUNT; form++) {
        bool aux = isa_form((Form)form)->lane == LANE_AUX;
        if (aux != (float_handler((Form)form) != NULL))
            fail_msg("%s", isa_form((Form)form)->name);
        handlers += aux;
    }
    assert_true(handlers > 200);
    assert_null(float_handler(FORM_INVALID));
    assert_null(float_handler(FORM_COUNT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_has_a_handler),
        cmocka_unit_test(rows_give_their_outputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
