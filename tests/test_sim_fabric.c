/* libraries: exchange sim */
/* test_sim_fabric.c - the fabric against rows of the vendor, and every violation it must see. */
#include "check.h"

#include "exchange_device.h"

typedef struct Bench {
    FabricTile tiles[TILES];
    uint8_t *memory;
    Pool *pool;
    SimFault fault;
} Bench;

static Bench *bench_open(void)
{
    Bench *bench = calloc(1, sizeof *bench);
    bench->memory = mmap(NULL, (size_t)TILES * SRAM_BYTES, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(bench->memory != MAP_FAILED);
    bench->pool = pool_create(2);
    for (uint32_t t = 0; t < TILES; t++) {
        FabricTile *tile = &bench->tiles[t];
        tile->memory = bench->memory + (size_t)t * SRAM_BYTES;
        tile->mux = tile->mux_pair = MUX_NEUTRAL;
        tile->row_start = EVENT0;
        tile->row_end = EVENT0 + 100000;
    }
    return bench;
}

static void bench_close(Bench *bench)
{
    for (uint32_t t = 0; t < TILES; t++) {
        array_free(&bench->tiles[t].sends);
        array_free(&bench->tiles[t].controls);
    }
    munmap(bench->memory, (size_t)TILES * SRAM_BYTES);
    pool_destroy(bench->pool);
    free(bench);
}

static uint32_t word_of(uint32_t tile, uint32_t address)
{
    return device_word(tile, address);
}

static void fill(Bench *bench, uint32_t tile, uint32_t address, uint32_t words)
{
    for (uint32_t i = 0; i < words; i++)
        store_u32(bench->tiles[tile].memory + (address - SRAM_BASE) + 4 * i,
                  word_of(tile, address + 4 * i));
}

static void expect(Bench *bench, uint32_t tile, uint32_t address, uint32_t source, uint32_t from,
                   uint32_t words)
{
    for (uint32_t i = 0; i < words; i++)
        assert_int_equal(load_u32(bench->tiles[tile].memory + (address - SRAM_BASE) + 4 * i),
                         word_of(source, from + 4 * i));
}

static void send_at(Bench *bench, uint32_t tile, int64_t event, uint32_t address, uint32_t items,
                    uint32_t sctl)
{
    FabricTile *t = &bench->tiles[tile];
    t->active = true;
    array_push(&t->sends, (FabricSend){.cycle = (uint64_t)(EVENT0 + event),
                                       .address = address,
                                       .items = items,
                                       .sctl = (uint8_t)sctl});
}

static void control_at(Bench *bench, uint32_t tile, int64_t event, uint32_t stream,
                       uint32_t selector, uint32_t value)
{
    bench->tiles[tile].active = true;
    device_control(&bench->tiles[tile], (uint64_t)(EVENT0 + event), stream, selector, value);
}

static bool run(Bench *bench)
{
    bench->fault = (SimFault){0};
    return fabric_deliver(bench->tiles, TILES, false, bench->pool, &bench->fault);
}

static void expect_fault(Bench *bench, uint32_t type, uint32_t tile, const char *part)
{
    assert_false(run(bench));
    if (!strstr(bench->fault.message, part))
        fail_msg("\"%s\" is not in \"%s\"", part, bench->fault.message);
    assert_int_equal(bench->fault.type, type);
    assert_int_equal(bench->fault.tile, tile);
    bench_close(bench);
}

/* The receiver row of exchange.md 3.7: four abutting messages of 52 words, cutover without gap. */
static void test_vendor_receiver_row(void **state)
{
    (void)state;
    Bench *bench = bench_open();
    static const uint32_t sources[] = {130, 192, 194, 256};
    static const uint32_t targets[] = {0x14048, 0x15000, 0x16000, 0x17000};
    uint32_t words[] = {isa_word(FORM_delayxpic, 1, 0, 130),
                        isa_word(FORM_delay, 51),
                        isa_word(FORM_sendpicp, 52, 0, 0, 0),
                        0x03014048,
                        isa_word(FORM_sendpicp, 52, 0, 0, 0),
                        194u << 18 | 0x15000,
                        isa_word(FORM_sendpicp, 52, 0, 0, 0),
                        256u << 18 | 0x16000,
                        isa_word(FORM_sendpicp, 58, 0, 0, 0),
                        0x640u << 18 | 0x17000,
                        isa_word(FORM_br_mmmn, 10)};
    assert_int_equal(words[2], 0xf6600000); /* the vendor's words */
    device_row(&bench->tiles[0], &(Row){words, countof(words)});
    assert_int_equal(bench->tiles[0].row_end - EVENT0, 266);
    for (uint32_t i = 0; i < 4; i++) {
        int64_t start = 1 + 52 * i - target_route_time(sources[i], 0) - 1;
        fill(bench, sources[i], 0x60000 + 0x100 * i, 52);
        send_at(bench, sources[i], start, 0x60000 + 0x100 * i, 52, 3);
    }
    assert_true(run(bench));
    for (uint32_t i = 0; i < 4; i++)
        expect(bench, 0, 4 * targets[i], sources[i], 0x60000 + 0x100 * i, 52);
    assert_int_equal(bench->tiles[0].words_received, 208);
    assert_int_equal(bench->tiles[130].words_sent, 52);
    bench_close(bench);
}

static void paired_receive(Bench *bench)
{
    uint32_t late = 66; /* logical 3; the early member is logical 2, physical 64 */
    fill(bench, 0, 0x60000, 128);
    send_at(bench, 0, 31, 0x60000, 64, 5);
    control_at(bench, 64, 1, 1, 1, 0);
    for (uint32_t tile = 64; tile <= late; tile += 2) {
        control_at(bench, tile, 54, 0, 1, 1);
        control_at(bench, tile, 56, 0, 0, 0x70000 / 4);
        if (tile == 64)
            control_at(bench, tile, 65, 1, 1, MUX_NEUTRAL);
        control_at(bench, tile, 118, 0, 1, 0);
        bench->tiles[tile].row_end = EVENT0 + 125;
    }
}

/* Times of a verified vendor row, 0 -> {2, 3}, 64 items (exchange.md 3.10; row 1 there). */
static void test_vendor_paired_rows(void **state)
{
    (void)state;
    Bench *bench = bench_open();
    assert_int_equal(target_early_member(0, 64), 64);
    paired_receive(bench);
    assert_true(run(bench));
    expect(bench, 64, 0x70000, 0, 0x60000, 128);
    expect(bench, 66, 0x70000, 0, 0x60000, 128);
    assert_int_equal(bench->tiles[66].words_received, 128);
    bench_close(bench);
}

static void test_paired_faults(void **state)
{
    (void)state;
    Bench *bench = bench_open();
    paired_receive(bench);
    send_at(bench, 2, 40, 0x60000, 10, 1); /* the sender's partner */
    expect_fault(bench, EXCEPTION_EXCONF, 0, "partner");

    bench = bench_open();
    paired_receive(bench);
    bench->tiles[66].controls.items[2].cycle--; /* format off one event early */
    expect_fault(bench, EXCEPTION_EXCONF, 66, "format");

    bench = bench_open();
    paired_receive(bench);
    bench->tiles[64].controls.items[1].cycle = EVENT0 + 1; /* format on at the select */
    expect_fault(bench, EXCEPTION_EXCONF, 64, "coincides");

    bench = bench_open();
    paired_receive(bench);
    bench->tiles[64].controls.items[0].selector = 0; /* ordinary selects of 64-bit items */
    bench->tiles[64].controls.items[3].selector = 0;
    expect_fault(bench, EXCEPTION_EXCONF, 64, "32-bit select");

    bench = bench_open();
    paired_receive(bench);
    bench->tiles[0].sends.items[0].sctl = 1;
    expect_fault(bench, EXCEPTION_EXCONF, 64, "64-bit select");
}

/* 0 sends ten words to 64 at event 100. */
static void receive_ten(Bench *bench)
{
    int64_t select = 100 + target_route_time(0, 64) + 1;
    fill(bench, 0, 0x60000, 10);
    send_at(bench, 0, 100, 0x60000, 10, 1);
    control_at(bench, 64, select, 1, 0, 0);
    control_at(bench, 64, select + 10, 1, 0, MUX_NEUTRAL);
    control_at(bench, 64, select + 54, 0, 0, 0x70000 / 4);
}

static void test_faults(void **state)
{
    (void)state;
    Bench *bench = bench_open();
    receive_ten(bench);
    assert_true(run(bench));
    expect(bench, 64, 0x70000, 0, 0x60000, 10);
    bench_close(bench);

    bench = bench_open();
    receive_ten(bench);
    bench->tiles[0].sends.items[0].sctl = 2; /* the wrong direction */
    expect_fault(bench, 0, 64, "catches no word");

    bench = bench_open();
    receive_ten(bench);
    bench->tiles[0].sends.items[0].cycle += 10; /* ten words late */
    expect_fault(bench, 0, 64, "catches no word");

    bench = bench_open();
    receive_ten(bench);
    bench->tiles[64].controls.items[1].value = 0; /* never deselected */
    expect_fault(bench, 0, 64, "still selected");

    bench = bench_open();
    receive_ten(bench);
    bench->tiles[64].controls.count = 2; /* no pointer */
    expect_fault(bench, EXCEPTION_EXERR, 64, "before any pointer");

    bench = bench_open();
    receive_ten(bench);
    bench->tiles[64].controls.items[2].cycle++; /* one event late: the first word has no place */
    expect_fault(bench, EXCEPTION_EXERR, 64, "before any pointer");

    bench = bench_open();
    receive_ten(bench);
    bench->tiles[64].controls.items[2].value = 0xe7ff0 / 4; /* runs out of memory */
    expect_fault(bench, EXCEPTION_EXERR, 64, "ADDR");

    bench = bench_open();
    receive_ten(bench);
    bench->tiles[64].row_end = bench->tiles[64].controls.items[2].cycle + 9;
    expect_fault(bench, EXCEPTION_EXERR, 64, "after the end of the row");

    bench = bench_open();
    receive_ten(bench);
    array_push(&bench->tiles[64].controls, bench->tiles[64].controls.items[2]);
    expect_fault(bench, EXCEPTION_EXCONF, 64, "two pointer controls");

    bench = bench_open();
    receive_ten(bench);
    bench->tiles[64].controls.items[0].value = 64; /* itself */
    expect_fault(bench, EXCEPTION_EXCONF, 64, "nothing can come");

    bench = bench_open();
    receive_ten(bench);
    bench->tiles[0].sends.items[0].address = SRAM_END - 8;
    expect_fault(bench, EXCEPTION_INVALID_ADDR, 0, "sends 10 items");

    bench = bench_open();
    receive_ten(bench);
    send_at(bench, 64, 130, 0x72000, 20, 3); /* reads where words are being written */
    expect_fault(bench, EXCEPTION_EXERR, 64, "CLASH_INSTR");

    bench = bench_open();
    receive_ten(bench);
    send_at(bench, 64, 130, 0x74000, 20, 3); /* the next element is fine */
    assert_true(run(bench));
    bench_close(bench);

    bench = bench_open();
    receive_ten(bench);
    bench->tiles[64].row_first = 0x6ffa0; /* fetch runs 64 bytes ahead: into the next element */
    bench->tiles[64].row_last = 0x6ffc4;
    expect_fault(bench, EXCEPTION_EXERR, 64, "CLASH_IFETCH");

    bench = bench_open();
    receive_ten(bench);
    bench->tiles[0].row_first = bench->tiles[0].row_last = 0x62000;
    expect_fault(bench, EXCEPTION_CONFLICT, 0, "row is fetched");
}

/* Idle slots of a selected source move nothing; a pointer written within a message splits it. */
static void test_gaps_and_split_pointers(void **state)
{
    (void)state;
    Bench *bench = bench_open();
    int64_t select = 100 + target_route_time(0, 64) + 1;
    fill(bench, 0, 0x60000, 40);
    send_at(bench, 0, 100, 0x60000, 10, 1);
    send_at(bench, 0, 115, 0x60028, 10, 3);
    send_at(bench, 0, 125, 0x60050, 10, 2); /* the other direction: not offered */
    control_at(bench, 64, select, 1, 0, 0);
    control_at(bench, 64, select + 54, 0, 0, 0x70000 / 4);
    control_at(bench, 64, select + 54 + 4, 0, 0, 0x71000 / 4);
    control_at(bench, 64, select + 54 + 20, 0, 0, 0x72000 / 4);
    control_at(bench, 64, select + 80, 1, 0, MUX_NEUTRAL);
    assert_true(run(bench));
    expect(bench, 64, 0x70000, 0, 0x60000, 4);
    expect(bench, 64, 0x71000, 0, 0x60010, 11);
    expect(bench, 64, 0x72000, 0, 0x6003c, 5);
    assert_int_equal(bench->tiles[64].words_received, 20);
    assert_int_equal(bench->tiles[64].pointer, 0x72014);
    bench_close(bench);
}

/* 0 -> 64 -> 128 in one phase: what 64 sends on is what it has got by then. */
static void test_forwarding(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        Bench *bench = bench_open();
        receive_ten(bench);
        fill(bench, 64, 0x70000, 10); /* old words */
        int64_t start = late ? 300 : 50, select = start + target_route_time(64, 128) + 1;
        send_at(bench, 64, start, 0x70000, 10, 3);
        control_at(bench, 128, select, 1, 0, 64);
        control_at(bench, 128, select + 10, 1, 0, MUX_NEUTRAL);
        control_at(bench, 128, select + 56, 0, 0, 0x74000 / 4);
        assert_true(run(bench));
        expect(bench, 64, 0x70000, 0, 0x60000, 10);
        if (late)
            expect(bench, 128, 0x74000, 0, 0x60000, 10);
        else
            expect(bench, 128, 0x74000, 64, 0x70000, 10);
        bench_close(bench);
    }
}

/* In a verifying run words that were never written stay so at the receiver. */
static void test_defined_words(void **state)
{
    (void)state;
    Bench *bench = bench_open();
    receive_ten(bench);
    uint8_t *source = calloc(1, SRAM_BYTES / 32), *target = calloc(1, SRAM_BYTES / 32);
    bench->tiles[0].defined = source;
    bench->tiles[64].defined = target;
    uint32_t from = (0x60000 - SRAM_BASE) / 4, to = (0x70000 - SRAM_BASE) / 4;
    for (uint32_t i = 0; i < 10; i++)
        if (i != 3)
            source[(from + i) / 8] |= (uint8_t)(1u << ((from + i) % 8));
    target[(to + 3) / 8] |= (uint8_t)(1u << ((to + 3) % 8));
    assert_true(fabric_deliver(bench->tiles, TILES, true, bench->pool, &bench->fault));
    for (uint32_t i = 0; i < 10; i++)
        assert_int_equal(target[(to + i) / 8] >> ((to + i) % 8) & 1, i != 3);
    free(source);
    free(target);
    bench_close(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vendor_receiver_row),     cmocka_unit_test(test_vendor_paired_rows),
        cmocka_unit_test(test_paired_faults),           cmocka_unit_test(test_faults),
        cmocka_unit_test(test_gaps_and_split_pointers), cmocka_unit_test(test_forwarding),
        cmocka_unit_test(test_defined_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
