/* execute_control.c - branches, calls, rpt, exits, traps, get and put: both kinds of context.
 *
 * Semantics: semantics-integer.md F and G. A branch puts its target into next_pc, which the issuing
 * loop has set to the next instruction; whether the target can execute is checked here, so that the
 * loop need not check every PC. */
#include "sim/core.h"

#define M(i) (c->m[d->op[i]])
#define IMMEDIATE(i) ((uint32_t)d->op[i])
#define SET(i, value) (c->m[d->out[i]] = (uint32_t)(value))

uint32_t raise_invalid_instruction(Context *c, const Decoded *d)
{
    (void)c;
    (void)d;
    return EXCEPTION_INVALID_INSTR;
}

uint32_t raise_invalid_operand(Context *c, const Decoded *d)
{
    (void)c;
    (void)d;
    return EXCEPTION_INVALID_OP;
}

uint32_t raise_invalid_pc(Context *c, const Decoded *d)
{
    (void)d;
    c->tile->detail = "execution leaves the executable memory";
    c->tile->detail_address = c->pc;
    return EXCEPTION_INVALID_PC;
}

/* Targets outside the code: the end of the program, of a call from the host, or a fault. */
__attribute__((noinline, cold)) static uint32_t branch_out(Context *c, uint32_t target)
{
    Tile *tile = c->tile;
    if (target == SIM_RETURN_ADDRESS && tile->calling)
        return OUTCOME_RETURN;
    if (target == 0 && c->number == 0 &&
        load_u32(tile->memory + STATE_BASE + STATE_COMPLETION - SRAM_BASE) == 1)
        return OUTCOME_COMPLETE;
    tile->detail = target & 3 ? "misaligned branch target" : "branch target is not executable";
    tile->detail_address = target;
    c->next_pc = target; /* choice: the fault reports the target */
    return EXCEPTION_INVALID_PC;
}

static inline uint32_t branch(Context *c, uint32_t target)
{
    if (unlikely(target - SRAM_BASE >= CODE_BYTES || target & 3))
        return branch_out(c, target);
    c->next_pc = target;
    c->taken = true;
    return OUTCOME_DONE;
}

static uint32_t br(Context *c, const Decoded *d)
{
    return branch(c, M(0));
}

static uint32_t bri(Context *c, const Decoded *d)
{
    return branch(c, IMMEDIATE(0));
}

static uint32_t brz(Context *c, const Decoded *d)
{
    return M(0) ? OUTCOME_DONE : branch(c, IMMEDIATE(1));
}

static uint32_t brnz(Context *c, const Decoded *d)
{
    return M(0) ? branch(c, IMMEDIATE(1)) : OUTCOME_DONE;
}

static uint32_t brneg(Context *c, const Decoded *d)
{
    return M(0) >> 31 ? branch(c, IMMEDIATE(1)) : OUTCOME_DONE;
}

static uint32_t brpos(Context *c, const Decoded *d)
{
    return M(0) >> 31 ? OUTCOME_DONE : branch(c, IMMEDIATE(1));
}

static uint32_t brnzdec(Context *c, const Decoded *d)
{
    uint32_t old = M(0);
    if (!old)
        return OUTCOME_DONE;
    uint32_t outcome = branch(c, IMMEDIATE(1));
    if (!outcome)
        SET(0, old - 1);
    return outcome;
}

static uint32_t call(Context *c, const Decoded *d)
{
    uint32_t link = c->next_pc,
             outcome = branch(c, IMMEDIATE(1) & 0x1fffff); /* bit 19 is ignored */
    if (!outcome)
        SET(0, link);
    return outcome;
}

/* --- rpt: the loop itself is in tile.c, where the PC reaches loop_end */

static inline uint32_t repeat(Context *c, uint32_t count, uint32_t length)
{
    uint32_t first = c->next_pc, end = first + 8 * (length + 1);
    if (first & 7) {
        c->tile->detail = "the body of rpt is not 8-byte aligned";
        c->tile->detail_address = first;
        return EXCEPTION_INVALID_INSTR; /* choice */
    }
    count &= 0xffff;
    uint32_t outcome = count ? OUTCOME_DONE : branch(c, end);
    if (outcome)
        return outcome;
    c->repeat_first = first;
    c->repeat_end = end;
    c->repeat_count = count;
    c->loop_end = count ? end : 0;
    return OUTCOME_DONE;
}

static uint32_t rpt_m(Context *c, const Decoded *d)
{
    return repeat(c, M(0), IMMEDIATE(1));
}

static uint32_t rpt_i(Context *c, const Decoded *d)
{
    return repeat(c, IMMEDIATE(0), IMMEDIATE(1));
}

/* --- exits. Choice: the status is combined with AND into the local consensus. */

static inline uint32_t exit_with(Context *c, bool status)
{
    c->tile->consensus &= status;
    return OUTCOME_EXIT;
}

static uint32_t exitz(Context *c, const Decoded *d)
{
    return exit_with(c, M(0) == 0);
}

static uint32_t exitnz(Context *c, const Decoded *d)
{
    return exit_with(c, M(0) != 0);
}

static uint32_t exitneg(Context *c, const Decoded *d)
{
    return exit_with(c, M(0) >> 31);
}

static uint32_t exitpos(Context *c, const Decoded *d)
{
    return exit_with(c, !(M(0) >> 31));
}

static uint32_t trap(Context *c, const Decoded *d)
{
    (void)c;
    return IMMEDIATE(0) & 1 ? EXCEPTION_PBRK1 : EXCEPTION_PBRK0;
}

static uint32_t get(Context *c, const Decoded *d)
{
    uint32_t value = 0, outcome = csr_read(c, IMMEDIATE(1), &value);
    if (!outcome)
        SET(0, value);
    return outcome;
}

static uint32_t put(Context *c, const Decoded *d)
{
    return csr_write(c, IMMEDIATE(1), M(0), false);
}

Execute *control_handler(Form form)
{
    static Execute *const handlers[FORM_COUNT] = {
        [FORM_br_mmmn] = br,
        [FORM_bri_mmmn_zi] = bri,
        [FORM_brz_mmmn_zi] = brz,
        [FORM_brnz_mmmn_zi] = brnz,
        [FORM_brneg_mmmn_zi] = brneg,
        [FORM_brpos_mmmn_zi] = brpos,
        [FORM_brnzdec_mmmn_zi] = brnzdec,
        [FORM_call_mmmn_zi] = call,
        [FORM_rpt_mmmn_zi] = rpt_m,
        [FORM_rpt_mmmn_zi_zi] = rpt_i,
        [FORM_exitz_mmmn] = exitz,
        [FORM_exitnz_mmmn] = exitnz,
        [FORM_exitneg_mmmn] = exitneg,
        [FORM_exitpos_mmmn] = exitpos,
        [FORM_trap] = trap,
        [FORM_get_mmmn_zi] = get,
        [FORM_put_mmmn_zi] = put,
    };
    return handlers[form];
}
