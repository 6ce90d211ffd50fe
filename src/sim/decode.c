/* decode.c - decoded instructions, kept per host thread.
 *
 * Worker code is kept by address: kernels stand at the same place on all tiles, and the words in
 * memory are compared at every fetch, so nothing has to be invalidated when code is patched or
 * another tile has other code there. Single words are also kept by their value, which makes
 * rebuilding an entry cheap; the supervisor, whose code differs from tile to tile, uses only that.
 */
#include "sim/core.h"

#include <stdlib.h>
#include <string.h>

enum { VALUE_ENTRIES = 1 << 13, ADDRESS_ENTRIES = CODE_BYTES / 4 };

Cache *cache_create(void)
{
    Cache *cache = xcalloc(1, sizeof *cache);
    cache->worker = xcalloc(ADDRESS_ENTRIES, sizeof *cache->worker);
    cache->supervisor = xcalloc(VALUE_ENTRIES, sizeof *cache->supervisor);
    cache->halves = xcalloc(VALUE_ENTRIES, sizeof *cache->halves);
    cache->stretch = stretch_create();
    cache->outside = (Decoded){.main = raise_invalid_pc, .size = 4, .period = TILE_WORKERS};
    return cache;
}

void cache_destroy(Cache *cache)
{
    if (!cache)
        return;
    free(cache->worker);
    free(cache->supervisor);
    free(cache->halves);
    stretch_destroy(cache->stretch);
    free(cache);
}

static bool is_main_register(const OperandInfo *operand)
{
    return operand->kind == OPERAND_M || operand->kind == OPERAND_M2;
}

static uint32_t aux_registers(const OperandInfo *operand, int32_t value)
{
    switch (operand->kind) {
    case OPERAND_A:
    case OPERAND_A_B:
    case OPERAND_A_BL:
    case OPERAND_A_BU:
        return 1u << value;
    case OPERAND_A2:
        return 3u << value;
    case OPERAND_A4:
        return 15u << value;
    default:
        return 0;
    }
}

static uint32_t aux_written(const FormInfo *form, const int32_t *operand)
{
    uint32_t mask = 0;
    for (int i = 0; i < form->operand_count; i++)
        if (form->operands[i].output)
            mask |= aux_registers(&form->operands[i], operand[i]);
    return mask;
}

/* Registers 12..15 drop writes: they go to 16 and 17. */
static void place_main_registers(const FormInfo *form, Decoded *d)
{
    for (int i = 0; i < form->operand_count; i++) {
        const OperandInfo *operand = &form->operands[i];
        if (!is_main_register(operand))
            continue;
        int32_t value = d->op[i];
        uint32_t mask = (operand->kind == OPERAND_M2 ? 3u : 1u) << value;
        d->out[i] = (uint8_t)(value < 12 ? value : 16);
        if (operand->input)
            d->reads |= (uint16_t)(mask & 0xfff);
        if (operand->output)
            d->writes |= (uint16_t)(mask & 0xfff);
    }
}

static void add_part(Decoded *d, uint32_t from, int32_t to, uint32_t count)
{
    if (to < 8) /* $a8..$a15 drop writes */
        d->part[d->parts++] = (LoadPart){(uint8_t)from, (uint8_t)to, (uint8_t)count};
}

/* Where the words in Context.load go. False: two destinations overlap. */
static bool place_loads(const FormInfo *form, Decoded *d)
{
    uint32_t from = 0, seen = 0;
    if (form->lane != LANE_MAIN)
        return true;
    if (d->form == FORM_ld64a32_mmbn) { /* word to D + 1, long word to D + 2; D stays */
        add_part(d, 0, d->op[3] + 1, 1);
        add_part(d, 1, d->op[3] + 2, 2);
        return true;
    }
    for (int i = 0; i < form->operand_count; i++) {
        if (!form->operands[i].output)
            continue;
        uint32_t mask = aux_registers(&form->operands[i], d->op[i]);
        if (!mask)
            continue;
        uint32_t count = (uint32_t)__builtin_popcount(mask);
        if (mask & seen)
            return false;
        seen |= mask;
        add_part(d, from, d->op[i], count);
        from += count;
    }
    return true;
}

static uint8_t csr_kind(int32_t number, bool write)
{
    switch (number) {
    case 0x03: /* TILE_ID */
    case 0x72: /* CTXT_STS */
        return KIND_PRIVATE;
    case 0x02:
    case 0x21 ... 0x26: /* weights, worker bases */
        return write ? KIND_PRIVATE : 0;
    default:
        return number >= 0xa0 && number <= 0xaf ? KIND_EXCHANGE_CSR : 0;
    }
}

static uint8_t kind_of(const Insn *insn, const FormInfo *form)
{
    uint8_t kind = form->flags & FORM_EXCHANGE ? KIND_EXCHANGE : 0;
    if (form->flags & (FORM_LOAD | FORM_STORE))
        kind |= KIND_MEMORY;
    switch (insn->form) {
    case FORM_run_mmmn_zi:
    case FORM_runall_mmmn_zi:
        return kind | KIND_LAUNCH | KIND_PRIVATE;
    case FORM_ld64putcs_mmmn_zi:
    case FORM_ld128putcs_mmmn_zi:
        return kind | KIND_PRIVATE;
    case FORM_sync:
    case FORM_sans:
        return kind | KIND_SYNC;
    case FORM_put_mmmn_zi:
        return kind | csr_kind(insn->operand[1], true);
    case FORM_get_mmmn_zi:
        return kind | csr_kind(insn->operand[1], false);
    case FORM_delay:
        return kind;
    default:
        return kind | (kind & KIND_EXCHANGE ? KIND_PRIVATE : 0);
    }
}

static Execute *main_handler(Form form)
{
    Execute *found = integer_handler(form);
    if (!found)
        found = memory_handler(form);
    if (!found)
        found = control_handler(form);
    return found ? found : supervisor_handler(form);
}

static uint32_t nothing(Context *c, const Decoded *d)
{
    (void)c;
    (void)d;
    return OUTCOME_DONE;
}

static void make_invalid(Decoded *d)
{
    d->main = raise_invalid_instruction;
    d->form = FORM_INVALID;
}

/* Besides floating-point exceptions, which FP_CTL must enable, an auxiliary instruction can only
 * refuse its immediates: a trial tells. */
static bool refuses_operands(Cache *cache, const Decoded *d)
{
    cache->scratch = (FloatState){0};
    return d->aux(&cache->scratch, &cache->scratch_weights, d->aux_op) != OUTCOME_DONE;
}

/* Fills in one word (two for sendpicp). d is zeroed but for words, care and size. */
static void decode_single(Cache *cache, Decoded *d, uint32_t word, uint32_t next, IsaMode mode)
{
    Insn insn;
    d->period = TILE_WORKERS;
    if (!isa_decode(word, next, mode, &insn) || insn.bundled) {
        make_invalid(d);
        return;
    }
    const FormInfo *form = isa_form(insn.form);
    d->form = insn.form;
    d->size = (uint8_t)(4 * insn.words);
    if (insn.words == 2)
        d->care = ~(uint64_t)0;
    d->payload = insn.payload;
    d->period = (uint8_t)(TILE_WORKERS * target_worker_slots(insn.form));
    d->kind = kind_of(&insn, form);
    if (form->lane == LANE_AUX) {
        memcpy(d->aux_op, insn.operand, sizeof d->aux_op);
        d->main = nothing;
        d->aux = float_handler(insn.form);
        if (!d->aux) {
            make_invalid(d);
        } else if (refuses_operands(cache, d)) {
            d->main = raise_invalid_operand;
            d->aux = NULL;
        }
        return;
    }
    memcpy(d->op, insn.operand, sizeof d->op);
    d->main = main_handler(insn.form);
    place_main_registers(form, d);
    if (!d->main)
        make_invalid(d);
    else if (!place_loads(form, d))
        d->main = raise_invalid_operand;
}

static uint32_t hash_word(uint32_t word)
{
    return word * 2654435761u >> (32 - 13);
}

/* One worker word without its bundle bit. */
static const Decoded *half(Cache *cache, uint32_t word)
{
    Decoded *d = &cache->halves[hash_word(word)];
    if (!d->size || (uint32_t)d->words != word) {
        *d = (Decoded){.words = word, .care = UINT32_MAX, .size = 4};
        decode_single(cache, d, word, 0, MODE_WORKER);
    }
    return d;
}

static bool is_system(const FormInfo *form)
{
    return form->flags & (FORM_CONTROL | FORM_SYSTEM);
}

/* Floating point can raise exceptions; bits, moves and CSRs can not. */
static bool may_fault(const FormInfo *aux)
{
    return aux->mnemonic[0] == 'f';
}

static uint8_t pair_number(int32_t r)
{
    return (uint8_t)(r / 2);
}

static uint8_t pair_to_write(int32_t r)
{
    return r < 8 ? pair_number(r) : FLOAT_DROPPED;
}

/* The main lane as part of a stretch (stretch.c). False: it is nothing for one. */
static bool foresee_main(const Decoded *d, FloatOp *op)
{
    op->stride = (uint8_t)d->op[0];
    op->pace = (uint8_t)d->op[4];
    op->store = pair_number(d->op[3]);
    op->load[0] = pair_to_write(d->op[2]);
    switch (d->form) {
    case FORM_ld2xst64pace_mbbn_ef:
        op->kind = FLOAT_LOAD | FLOAT_LOAD_SECOND | FLOAT_STORE;
        op->load[1] = pair_to_write(d->op[2] + 2);
        break;
    case FORM_ld2x64pace_mmbn_ef:
        op->kind = FLOAT_LOAD | FLOAT_LOAD_SECOND;
        op->load[1] = pair_to_write(d->op[3]);
        break;
    case FORM_ldst64pace_mbbn_ef:
        op->kind = FLOAT_LOAD | FLOAT_STORE;
        break;
    case FORM_st64pace_mbmn_ef:
        op->kind = FLOAT_STORE;
        op->pace = (uint8_t)d->op[2];
        break;
    case FORM_setzi_mmmn_zi:
        return d->out[0] >= 16; /* nop */
    default:
        return d->form == FORM_rpt_mmmn_zi || d->form == FORM_rpt_mmmn_zi_zi;
    }
    return d->op[1] < 12; /* a pair that keeps what is written */
}

static bool foresee_aux(const Decoded *d, Form form, FloatOp *op)
{
    if (form == FORM_setzi_aaan_zi)
        return d->aux_op[0] >= 8; /* fnop */
    uint32_t phase = (uint32_t)d->aux_op[3] & ~8u;
    if (phase > 3 || !float_stretch(form))
        return false;
    op->run = float_stretch(form);
    op->aux = d->aux;
    op->operand = d->aux_op;
    op->kind |= FLOAT_AMP;
    op->result = pair_to_write(d->aux_op[0]);
    op->x = pair_number(d->aux_op[1]);
    op->partials = pair_number(d->aux_op[2]);
    op->phase = (uint8_t)phase;
    return true;
}

static void decode_bundle(Cache *cache, Decoded *d, uint32_t first, uint32_t second)
{
    /* Copies: both may live in the same entry. */
    Decoded main = *half(cache, first & 0x7fffffff), aux = *half(cache, second & 0x7fffffff);
    const FormInfo *main_form = isa_form(main.form), *aux_form = isa_form(aux.form);
    uint64_t words = d->words;
    bool valid = main.form != FORM_INVALID && aux.form != FORM_INVALID &&
                 main_form->lane == LANE_MAIN && aux_form->lane == LANE_AUX && main_form->coissue &&
                 aux_form->coissue;
    *d = main;
    d->words = words;
    d->care = ~(uint64_t)0;
    d->size = 8;
    if (!valid) {
        make_invalid(d);
        return;
    }
    /* Choice: both lanes writing one register is an operand error. */
    if (!aux.aux || aux_written(main_form, d->op) & aux_written(aux_form, aux.aux_op)) {
        d->main = raise_invalid_operand;
        return;
    }
    d->aux = aux.aux;
    memcpy(d->aux_op, aux.aux_op, sizeof d->aux_op);
    d->period = aux.period;
    d->body = !is_system(main_form) && !is_system(aux_form);
    d->guard = may_fault(aux_form);
    d->foreseen = foresee_main(d, &d->stretch) && foresee_aux(d, (Form)aux.form, &d->stretch);
    if (!d->foreseen)
        d->stretch.run = NULL;
}

/* The entry for the words at `pc`, built when it is not there. */
const Decoded *cache_worker(Cache *cache, const Tile *tile, uint32_t pc)
{
    uint32_t offset = pc - SRAM_BASE;
    if (offset >= CODE_BYTES)
        return &cache->outside;
    Decoded *d = &cache->worker[offset / 4];
    uint64_t words = load_u64(tile->memory + offset);
    if (d->size && !((words ^ d->words) & d->care))
        return d;
    uint32_t first = (uint32_t)words;
    if (!(first >> 31)) {
        *d = *half(cache, first);
        return d;
    }
    if (offset + 4 >= CODE_BYTES)
        return &cache->outside;
    *d = (Decoded){.words = words};
    decode_bundle(cache, d, first, (uint32_t)(words >> 32));
    return d;
}

const Decoded *cache_supervisor(Cache *cache, const Tile *tile, uint32_t pc)
{
    uint32_t offset = pc - SRAM_BASE;
    if (offset >= CODE_BYTES)
        return &cache->outside;
    uint64_t words = load_u64(tile->memory + offset);
    uint32_t first = (uint32_t)words;
    Decoded *d = &cache->supervisor[hash_word(first)];
    if (d->size && !((words ^ d->words) & d->care))
        return d;
    *d = (Decoded){.words = words, .size = 4, .care = UINT32_MAX};
    decode_single(cache, d, first, (uint32_t)(words >> 32), MODE_SUPERVISOR);
    return d;
}
