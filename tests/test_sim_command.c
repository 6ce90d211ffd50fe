/* libraries: cli */
/* test_sim_command.c - ipu-stack sim as its users run it: options in, text or JSON and exit status
 * out. */
#include "cli/cli.h"

#include "check.h"

#include <string.h>
#include <unistd.h>

static char folder[64], output[1 << 16];

static const char *path_of(const char *name)
{
    static char paths[4][128];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void write_text(const char *name, const char *text)
{
    assert_ok(file_write(path_of(name), text, strlen(text)));
}

/* Runs the verb with its standard output and error in `output`. */
#define SIM(...) run_sim((const char *[]){"sim", __VA_ARGS__, NULL})

static int run_sim(const char **words)
{
    char *argv[32];
    int argc = 0;
    for (; words[argc]; argc++)
        argv[argc] = (char *)words[argc];
    argv[argc] = NULL;
    fflush(stdout);
    fflush(stderr);
    FILE *file = tmpfile();
    int saved[2] = {dup(1), dup(2)};
    dup2(fileno(file), 1);
    dup2(fileno(file), 2);
    int status = cmd_sim(argc, argv);
    fflush(stdout);
    fflush(stderr);
    for (int i = 0; i < 2; i++) {
        dup2(saved[i], 1 + i);
        close(saved[i]);
    }
    rewind(file);
    output[fread(output, 1, sizeof output - 1, file)] = 0;
    fclose(file);
    return status;
}

static void expect(const char *part)
{
    if (!strstr(output, part))
        fail_msg("no \"%s\" in:\n%s", part, output);
}

static const char VECTOR_ADD[] = ".supervisor\n"
                                 ".globl vector_add\n"
                                 "vector_add: setzi $m0, worker\n"
                                 " runall $m0, $m2, 0\n"
                                 " sync 2\n"
                                 " br $m10\n"
                                 ".worker\n"
                                 "worker: get $m0, $WSR\n"
                                 " and $m0, $m0, 7\n"
                                 " ld32 $m1, $m13, $m15, 0\n"
                                 " ld32 $m2, $m13, $m15, 1\n"
                                 " ld32 $m3, $m13, $m15, 2\n"
                                 " ld32 $m4, $m13, $m15, 3\n"
                                 " bri 2f\n"
                                 "1: ld32 $m5, $m1, $m15, $m0\n"
                                 " ld32 $m6, $m2, $m15, $m0\n"
                                 " add $m5, $m5, $m6\n"
                                 " stm32 $m5, $m3, $m0\n"
                                 " add $m0, $m0, 6\n"
                                 "2: cmpult $m5, $m0, $m4\n"
                                 " brnz $m5, 1b\n"
                                 " exitz $m15\n"
                                 ".data\n"
                                 ".globl frame\n"
                                 "frame: .long 0x60000, 0x61000, 0x62000, COUNT\n";

static void six_workers_add_vectors(void **state)
{
    (void)state;
    write_text("add.S", VECTOR_ADD);
    uint32_t a[20], b[20];
    for (uint32_t i = 0; i < 20; i++) {
        a[i] = 1000 * i;
        b[i] = i;
    }
    assert_ok(file_write(path_of("a"), a, sizeof a));
    assert_ok(file_write(path_of("b"), b, sizeof b));
    char load_a[160], load_b[160], dump[160];
    snprintf(load_a, sizeof load_a, "0x60000=%s", path_of("a"));
    snprintf(load_b, sizeof load_b, "0x61000=%s", path_of("b"));
    snprintf(dump, sizeof dump, "0x62000:84=%s", path_of("c"));
    assert_int_equal(SIM(path_of("add.S"), "-DCOUNT=20", "--set", "$m2=frame", "--load", load_a,
                         "--load", load_b, "--fill", "0x62000:84=0xee", "--dump", dump),
                     0);
    expect("supervisor at 0x4c100: returned\n");
    expect("bundles worker0=38\n"); /* 4 elements: 7 + 5 * 4 + 2 * 5 + 1 */
    expect("bundles worker5=31\n");
    Bytes bytes;
    assert_ok(file_read(path_of("c"), 1000, &bytes));
    assert_int_equal(bytes.count, 84);
    for (uint32_t i = 0; i < 20; i++)
        assert_int_equal(load_u32(bytes.data + 4 * i), 1001 * i);
    assert_int_equal(load_u32(bytes.data + 80), 0xeeeeeeee); /* no word too many */
    bytes_free(&bytes);
}

static json_t *json_output(void)
{
    json_error_t error = {.text = "no object"};
    const char *start = output[0] == '{' ? output : strstr(output, "\n{"); /* after messages */
    json_t *object = start ? json_loads(start, JSON_DISABLE_EOF_CHECK, &error) : NULL;
    if (!object)
        fail_msg("%s:\n%s", error.text, output);
    return object;
}

static const char *text_at(json_t *object, const char *part, const char *key)
{
    const char *text = json_string_value(json_object_get(json_object_get(object, part), key));
    if (!text)
        fail_msg("no %s.%s in:\n%s", part, key, output);
    return text;
}

static void json_tells_registers_and_csrs(void **state)
{
    (void)state;
    write_text("worker.S", "add $m2, $m0, $m1\n{ nop ; f32add $a2, $a0, $a1 }\n"
                           "uput 8, $a0\nexitz $m15\n");
    assert_int_equal(SIM(path_of("worker.S"), "--mode", "worker", "--set", "$m0=0x1", "--set",
                         "m1=2", "--set", "$a0=0x3f800000", "--set", "a1=0x40000000", "--set",
                         "FP_CTL=0x80000", "--set", "PRNG_SEED=5", "--json"),
                     0);
    json_t *object = json_output();
    assert_int_equal(json_integer_value(json_object_get(object, "cycles")), 24);
    assert_string_equal(text_at(object, "registers", "$m2"), "0x00000003");
    assert_string_equal(text_at(object, "registers", "$a2"), "0x40400000");
    assert_string_equal(text_at(object, "csrs", "FP_STS"), "0x00000000");
    assert_string_equal(text_at(object, "csrs", "FP_CTL"), "0x00080000");
    assert_string_equal(text_at(object, "csrs", "TAS"), "0x3f800000");
    assert_string_equal(text_at(object, "csrs", "PRNG_0_0"), "0x00000005");
    assert_true(json_is_null(json_object_get(object, "fault")));
    json_t *bundles = json_object_get(object, "bundles");
    assert_int_equal(json_integer_value(json_object_get(bundles, "worker0")), 4);
    assert_int_equal(json_integer_value(json_object_get(bundles, "supervisor")), 0);
    json_decref(object);
}

static void faults_are_told_and_end_with_status_1(void **state)
{
    (void)state;
    write_text("fault.S", "nop\nld32 $m0, $m1, $m15, 0\nexitz $m15\n");
    assert_int_equal(SIM(path_of("fault.S"), "--set", "m1=0x60002", "--mode", "worker", "--json"),
                     1);
    json_t *object = json_output();
    assert_string_equal(text_at(object, "fault", "type"), "INVALID_ADDR");
    assert_string_equal(text_at(object, "fault", "context"), "worker0");
    assert_string_equal(text_at(object, "fault", "pc"), "0x0004c104");
    assert_string_equal(text_at(object, "fault", "instruction"), "ld32 $m0, $m1, $m15, 0");
    json_t *fault = json_object_get(object, "fault");
    assert_int_equal(json_integer_value(json_object_get(fault, "cycle")), 6);
    assert_string_equal(text_at(object, "csrs", "WSR"), "0x00000080");
    json_decref(object);
    write_text("fault.S", "nop\nld32 $m0, $m1, $m15, 0\nbr $m10\n");
    assert_int_equal(SIM(path_of("fault.S"), "--set", "m1=0x60002"), 1);
    expect("fault type=INVALID_ADDR context=supervisor");
}

static void a_runaway_ends_with_status_1(void **state)
{
    (void)state;
    write_text("loop.S", "1: bri 1b\n");
    assert_int_equal(SIM(path_of("loop.S"), "--max-cycles", "1000"), 1);
    expect("limit of cycles");
    assert_int_equal(SIM(path_of("loop.S"), "--max-cycles", "1000", "--mode", "worker"), 1);
    expect("context=worker0");
}

static void trace_shows_every_bundle(void **state)
{
    (void)state;
    write_text("trace.S", "setzi $m0, 5\n{ add $m1, $m0, 1 ; setzi $a0, 7 }\nexitz $m15\n");
    assert_int_equal(SIM(path_of("trace.S"), "--trace"), 0);
    expect("       0 worker0    0x4c100  setzi $m0, 5");
    expect("{ add $m1, $m0, 1; setzi $a0, 7 }");
    expect("$m1=0x00000006 $a0=0x00000007");
    expect("      12 worker0    0x4c10c  exitz $m15");
    char option[160];
    snprintf(option, sizeof option, "--trace=%s", path_of("trace.txt"));
    assert_int_equal(SIM(path_of("trace.S"), option), 0);
    assert_null(strstr(output, "setzi"));
    Bytes bytes;
    assert_ok(file_read(path_of("trace.txt"), 10000, &bytes));
    assert_non_null(strstr((const char *)bytes.data, "setzi $m0, 5"));
    bytes_free(&bytes);
}

static void breakpoints_stop_and_are_no_failure(void **state)
{
    (void)state;
    write_text("break.S", ".supervisor\nsetzi $m0, 1\nhere: setzi $m0, 2\nbr $m10\n");
    assert_int_equal(SIM(path_of("break.S"), "--break", "here"), 0);
    expect("breakpoint");
    expect("$m0=0x00000001");
}

static void the_mode_is_found_from_the_code(void **state)
{
    (void)state;
    write_text("both.S", "setzi $m0, 1\nbr $m10\n");
    assert_int_equal(SIM(path_of("both.S")), 0);
    expect("supervisor at");
    write_text("exits.S", "setzi $m0, 1\nexitz $m15\n");
    assert_int_equal(SIM(path_of("exits.S")), 0);
    expect("worker0 at");
    assert_int_equal(SIM(path_of("exits.S"), "--mode", "supervisor"), 1);
}

static void bad_usage_ends_with_status_2_and_bad_input_with_1(void **state)
{
    (void)state;
    write_text("ok.S", "exitz $m15\n");
    assert_int_equal(SIM("--nonsense"), 2);
    assert_int_equal(run_sim((const char *[]){"sim", NULL}), 2);
    assert_int_equal(SIM(path_of("ok.S"), "--mode", "both"), 2);
    assert_int_equal(SIM(path_of("ok.S"), "--max-cycles", "0"), 2);
    assert_int_equal(SIM(path_of("ok.S"), "--base", "0x100"), 2);
    assert_int_equal(SIM(path_of("absent.S")), 1);
    assert_int_equal(SIM(path_of("ok.S"), "--entry", "nowhere"), 1);
    assert_int_equal(SIM(path_of("ok.S"), "--set", "m77=1"), 1);
    assert_int_equal(SIM(path_of("ok.S"), "--set", "m1"), 1);
    assert_int_equal(SIM(path_of("ok.S"), "--set", "m1=0x123456789a"), 1);
    assert_int_equal(SIM(path_of("ok.S"), "--dump", "0xe7fff:2"), 1);
    assert_int_equal(SIM(path_of("ok.S"), "--fill", "0x60000:4=256"), 1);
    assert_int_equal(SIM(path_of("ok.S"), "--load", "0x60000=/nonexistent/file"), 1);
    write_text("bad.S", "no_such_instruction $m0\n");
    assert_int_equal(SIM(path_of("bad.S")), 1);
    expect("bad.S:1");
}

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/ipu-test-sim-XXXXXX");
    return mkdtemp(folder) ? 0 : 1;
}

static int remove_folder(void **state)
{
    (void)state;
    static const char *const names[] = {"add.S",   "a",      "b",         "c",       "worker.S",
                                        "fault.S", "loop.S", "trace.S",   "break.S", "both.S",
                                        "exits.S", "ok.S",   "trace.txt", "bad.S"};
    for (size_t i = 0; i < countof(names); i++)
        unlink(path_of(names[i]));
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(six_workers_add_vectors),
        cmocka_unit_test(json_tells_registers_and_csrs),
        cmocka_unit_test(faults_are_told_and_end_with_status_1),
        cmocka_unit_test(a_runaway_ends_with_status_1),
        cmocka_unit_test(trace_shows_every_bundle),
        cmocka_unit_test(breakpoints_stop_and_are_no_failure),
        cmocka_unit_test(the_mode_is_found_from_the_code),
        cmocka_unit_test(bad_usage_ends_with_status_2_and_bad_input_with_1),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
