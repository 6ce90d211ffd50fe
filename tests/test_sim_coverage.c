/* libraries: sim as */
/* test_sim_coverage.c - every form of the instruction table is executed by a test with results that
 * come from elsewhere: a row of tests/data/sim (checked by test_sim_integer_vectors and
 * test_sim_float_vectors), or, for what acts between tiles, a phase whose events are counted by
 * hand here. The count is the test: a form that is in neither fails it. */
#include "sim_program.h"

#include "as/as.h"
#include "float_case.h"

#include <string.h>

/* --- a phase by hand: tile FROM sends to tile TO, which sends to tile NEXT at the same time and
 * sets its source and pointer without a break in its own message. Times are those of exchange.md:
 * a word sent in event S by s passes the mux of d in event S + T(s, d) + 1 and is written
 * 52 + 2 row(d) events later; a control beside an item acts one event after it. */

enum {
    FROM = 0,
    TO = 53,
    NEXT = 700,
    WORDS = 20,
    ROW = 0x5c000,
    SOURCE = 0x60000,
    TARGET = 0x64000
};

typedef struct Times {
    int lead; /* of TO: when it begins to send */
    int start, select, write,
        end; /* FROM sends; TO selects it, its first word is written; all over */
    int next_select, next_write; /* NEXT */
    int items;                   /* that TO sends */
} Times;

static int at_least(int value, int low)
{
    return value > low ? value : low;
}

static Times times_of_phase(void)
{
    int route = target_route_time(FROM, TO), next_route = target_route_time(TO, NEXT);
    Times t = {.lead = at_least(2, -next_route)};
    t.start = at_least(t.lead + 10 - route, 1);
    t.select = t.start + route + 1;
    t.write = t.select + 52 + 2 * target_row(TO);
    t.items = t.write + WORDS + 5 - t.lead;
    t.next_select = t.lead + next_route + 1;
    t.next_write = t.next_select + 52 + 2 * target_row(NEXT);
    t.end = t.next_write + t.items + 10;
    return t;
}

static void emit_sender(Program *row, const Times *t)
{
    EMIT(row, delay, t->start);
    EMIT(row, send, WORDS, SOURCE / 4, (int)target_direction(FROM, TO));
    EMIT(row, delay, t->end - t->start - WORDS);
    EMIT(row, br_mmmn, 10);
}

/* One control a word: send, then sendoff and sendpic take turns. */
static void emit_by_sendpic(Program *row, const Times *t)
{
    int sctl = (int)target_direction(TO, NEXT), rest = t->items - (t->write - t->lead);
    EMIT(row, delay, t->lead);
    EMIT(row, send, 3, SOURCE / 4, sctl);
    EMIT(row, sendoff, t->select - 1 - t->lead - 3, 0, sctl);
    EMIT(row, sendpic, 1, 0, FROM);
    EMIT(row, sendoff, WORDS - 1, 0, sctl);
    EMIT(row, sendpic, 1, 0, MUX_NEUTRAL);
    EMIT(row, sendoff, t->write - 1 - t->select - WORDS, 0, sctl);
    EMIT(row, sendpic, 1, 2, (TARGET - SRAM_BASE) / 4);
    EMIT(row, sendoff, rest, 0, sctl);
    EMIT(row, delay, t->end - t->lead - t->items);
    EMIT(row, br_mmmn, 10);
}

static void emit_picp(Program *row, int *sent, int items, int pointer, int source)
{
    int sctl = (int)target_direction(TO, NEXT);
    EMIT(row, sendpicp, items, SOURCE / 4 + *sent, sctl, 0);
    emit(row, (uint32_t)pointer | (uint32_t)source << 18);
    *sent += items;
}

/* Both controls at once, each time with the address that the message has come to. */
static void emit_by_sendpicp(Program *row, const Times *t)
{
    int sent = 0, target = (TARGET - SRAM_BASE) / 4, first = t->select - 1 - t->lead;
    EMIT(row, delay, t->lead - 1);
    EMIT(row, delay, 1);
    emit_picp(row, &sent, first, 0, MUX_NEUTRAL);
    emit_picp(row, &sent, WORDS, 0, FROM);
    emit_picp(row, &sent, t->write - t->select - WORDS, 0, MUX_NEUTRAL);
    emit_picp(row, &sent, t->items - sent, target, MUX_NEUTRAL);
    EMIT(row, delay, t->end - t->lead - t->items);
    EMIT(row, br_mmmn, 10);
}

static void emit_listener(Program *row, const Times *t)
{
    int wait = t->next_write - t->next_select;
    assert_true(wait < t->items);
    EMIT(row, delayxpic, t->next_select, 0, TO);
    EMIT(row, delaypic, wait, 0, (TARGET - SRAM_BASE) / 4);
    EMIT(row, delayxpic, t->items - wait, 0, MUX_NEUTRAL);
    EMIT(row, delay, t->end - t->next_select - t->items);
    EMIT(row, br_mmmn, 10);
}

static void load_tile(Sim *sim, uint32_t tile, const Times *t, bool both)
{
    Program code = {.address = CODE}, row = {.address = ROW};
    bool active = tile == FROM || tile == TO || tile == NEXT;
    EMIT(&code, setzi_mmmn_zi, 8, SRAM_BASE);
    EMIT(&code, put_mmmn_zi, 8, isa_csr_number("INCOMING_BASE", MODE_SUPERVISOR));
    EMIT(&code, put_mmmn_zi, MZERO, isa_csr_number("OUTGOING_BASE", MODE_SUPERVISOR));
    if (active)
        EMIT(&code, sync, 3);
    else
        EMIT(&code, sans, 0), EMIT(&code, sync, 1);
    EMIT(&code, call_mmmn_zi, 10, ROW);
    emit_completion(&code);
    if (tile == FROM)
        emit_sender(&row, t);
    else if (tile == TO)
        (both ? emit_by_sendpicp : emit_by_sendpic)(&row, t);
    else if (tile == NEXT)
        emit_listener(&row, t);
    else
        EMIT(&row, br_mmmn, 10);
    load_program(sim, tile, &code);
    load_program(sim, tile, &row);
    sim_set_entry(sim, tile, CODE);
}

static void a_message_goes_on_while_another_arrives(void **state)
{
    (void)state;
    for (int both = 0; both < 2; both++) {
        Times t = times_of_phase();
        Sim *sim;
        assert_ok(sim_create(&(SimOptions){.tiles = TILES, .threads = 1, .verify = true}, &sim));
        for (uint32_t tile = 0; tile < TILES; tile++)
            load_tile(sim, tile, &t, both);
        for (uint32_t i = 0; i < (uint32_t)t.items; i++) {
            poke(sim, FROM, SOURCE + 4 * i, 0x11110000 + i);
            poke(sim, TO, SOURCE + 4 * i, 0x22220000 + i);
        }
        if (sim_run(sim) != SIM_COMPLETE)
            fail_msg("tile %u, cycle %llu: %s", sim_fault(sim)->tile,
                     (unsigned long long)sim_fault(sim)->cycle, sim_fault(sim)->message);
        for (uint32_t i = 0; i < WORDS; i++)
            assert_int_equal(peek(sim, TO, TARGET + 4 * i), 0x11110000 + i);
        assert_int_equal(peek(sim, TO, TARGET + 4 * WORDS), 0);
        for (uint32_t i = 0; i < (uint32_t)t.items; i++)
            assert_int_equal(peek(sim, NEXT, TARGET + 4 * i), 0x22220000 + i);
        assert_int_equal(peek(sim, NEXT, TARGET + 4 * (uint32_t)t.items), 0);
        assert_int_equal(sim_counts(sim).exchange_words, WORDS + t.items);
        sim_destroy(sim);
    }
}

/* What acts between tiles: executed and checked by the test above, barriers also by
 * test_sim_machine.c: barriers_that_not_all_reach_are_faults, phase_times_follow_the_rules. */
static const Form BETWEEN_TILES[] = {FORM_delay,    FORM_delaypic, FORM_delayxpic,
                                     FORM_send,     FORM_sendoff,  FORM_sendpic,
                                     FORM_sendpicp, FORM_sync,     FORM_sans};

/* --- counting */

static bool covered[FORM_COUNT];

static void cover_words(const uint32_t *words, uint32_t count, IsaMode mode)
{
    for (uint32_t i = 0; i < count; i++) {
        Insn insn;
        if (!isa_decode(words[i], i + 1 < count ? words[i + 1] : 0, mode, &insn))
            continue;
        covered[insn.form] = true;
        i += insn.words - 1u;
    }
}

static void cover_integer_row(const char *text, const char *inputs)
{
    Arena arena = {0};
    AsObject object;
    bool supervisor = strstr(inputs, "mode=supervisor") != NULL;
    char source[400];
    int length = snprintf(source, sizeof source, "%s\n.allow_invalid_repeat\n%s\n",
                          supervisor ? ".supervisor" : ".worker", text);
    assert_ok(assemble(&arena, "row", source, (size_t)length,
                       &(AsOptions){.supervisor = supervisor}, &object));
    for (uint32_t i = 0; i < object.section_count; i++)
        cover_words((const uint32_t *)(const void *)object.sections[i].data,
                    object.sections[i].bytes / 4, supervisor ? MODE_SUPERVISOR : MODE_WORKER);
    arena_free(&arena);
}

static void cover_file(const char *name, bool integer)
{
    static char line[4096];
    char path[512];
    snprintf(path, sizeof path, SOURCE_DIR "/tests/data/sim/%s", name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file)); /* heading */
    while (fgets(line, sizeof line, file)) {
        char *rest = line, *text = strsep(&rest, "\t"), *inputs = strsep(&rest, "\t");
        assert_non_null(inputs);
        Form form;
        int32_t operand[ISA_OPERANDS];
        if (integer)
            cover_integer_row(text, inputs);
        else if (parse_float_insn(text, &form, operand))
            covered[form] = true;
    }
    fclose(file);
}

static void every_form_is_checked(void **state)
{
    (void)state;
    cover_file("integer.tsv", true);
    cover_file("float-vectors.tsv", false);
    unsigned in_rows = 0, missing = 0;
    for (int form = 1; form < FORM_COUNT; form++)
        in_rows += covered[form];
    for (size_t i = 0; i < countof(BETWEEN_TILES); i++)
        covered[BETWEEN_TILES[i]] = true;
    for (int form = 1; form < FORM_COUNT; form++)
        if (!covered[form]) {
            print_error("no test checks %s\n", isa_form((Form)form)->name);
            missing++;
        }
    print_message("%d forms: %u in rows, %u between tiles, %u nowhere\n", FORM_COUNT - 1, in_rows,
                  FORM_COUNT - 1 - in_rows - missing, missing);
    assert_int_equal(missing, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_goes_on_while_another_arrives),
        cmocka_unit_test(every_form_is_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
