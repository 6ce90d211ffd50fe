/* sim_program.h - shared by the tests of the simulator: machine code word by word, one tile. */
#ifndef IPU_TESTS_SIM_PROGRAM_H
#define IPU_TESTS_SIM_PROGRAM_H

#include "sim/sim.h"

#include "check.h"

enum { CODE = 0x4c100, WORKER_CODE = 0x4d000, DATA = 0x60000, MZERO = 15 };

typedef struct Program { /* words that go to `address` and on */
    uint32_t address, count;
    uint32_t words[4096];
} Program;

static inline uint32_t emit(Program *program, uint32_t word) /* answers its address */
{
    assert_true(program->count < countof(program->words));
    program->words[program->count++] = word;
    return program->address + 4 * (program->count - 1);
}

static inline uint32_t emit_bundle(Program *program, uint32_t main, uint32_t aux)
{
    uint32_t at = emit(program, main | 1u << 31);
    emit(program, aux | 1u << 31);
    return at;
}

#define EMIT(program, form, ...) emit(program, isa_word(FORM_##form, __VA_ARGS__))
#define NOP isa_word(FORM_setzi_mmmn_zi, 14, 0)
#define FNOP isa_word(FORM_setzi_aaan_zi, 13, 0)

static inline Sim *one_tile(void)
{
    Sim *sim;
    assert_ok(sim_create(&(SimOptions){.tiles = 1, .max_cycles = 10000000}, &sim));
    return sim;
}

static inline void load_program(Sim *sim, uint32_t tile, const Program *program)
{
    assert_ok(sim_write(sim, tile, program->address, program->words, 4 * program->count));
}

static inline void poke(Sim *sim, uint32_t tile, uint32_t address, uint32_t value)
{
    assert_ok(sim_write(sim, tile, address, &value, 4));
}

static inline uint32_t peek(Sim *sim, uint32_t tile, uint32_t address)
{
    uint32_t value;
    assert_ok(sim_read(sim, tile, address, &value, 4));
    return value;
}

/* Stores the completion word and ends the tile. */
static inline void emit_completion(Program *program)
{
    EMIT(program, setzi_mmmn_zi, 0, 1);
    EMIT(program, setzi_mmmn_zi, 1, STATE_BASE + STATE_COMPLETION);
    EMIT(program, st32_mmmn_zi, 1, MZERO, 0, 0);
    EMIT(program, br_mmmn, MZERO);
}

#endif
