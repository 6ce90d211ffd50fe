/* amp_plain.h - issues of the wide hiho forms in which nothing special happens: everything is
 * finite, and every result fits a half. A template without guard, included by amp_unit.h for hosts
 * that convert halves.
 *
 * The one idea: find out in the end. An issue computes everything and says whether it was plain; if
 * not, nothing was written and the complete code does it again. So nothing here asks for flags,
 * NaNs or random numbers, and a stretch of issues keeps the unit in the host's registers. */

typedef struct AMP_NAME(Unit) { /* no arrays: so it can live in registers */
    Row live0, live1, chain0, chain1;
} AMP_NAME(Unit);

AMP_INLINE Row AMP_NAME(load_row)(const uint32_t *from)
{
    Row row;
    memcpy(&row, from, sizeof row);
    return row;
}

AMP_INLINE AMP_NAME(Unit) AMP_NAME(load_unit)(const uint32_t *live, const uint32_t *chain)
{
    return (AMP_NAME(Unit)){AMP_NAME(load_row)(live), AMP_NAME(load_row)(live + 8),
                            AMP_NAME(load_row)(chain), AMP_NAME(load_row)(chain + 8)};
}

AMP_INLINE void AMP_NAME(store_unit)(FloatState *state, const AMP_NAME(Unit) * unit)
{
    memcpy(state->live, &unit->live0, sizeof(Row));
    memcpy(state->live + 8, &unit->live1, sizeof(Row));
    memcpy(state->chain, &unit->chain0, sizeof(Row));
    memcpy(state->chain + 8, &unit->chain1, sizeof(Row));
}

AMP_INLINE void AMP_NAME(exchange_unit)(AMP_NAME(Unit) * unit)
{
    *unit = (AMP_NAME(Unit)){unit->chain0, unit->chain1, unit->live0, unit->live1};
}

/* Sums of the units from `column` on, of one vector. */
AMP_INLINE Sums AMP_NAME(next_sums)(Sums sums, const double (*column)[16], const Factors *x,
                                    Product product)
{
    Wide total = AMP_NAME(four_products)(column, &x->low);
    if (product == QUARTERS)
        total = total + AMP_NAME(four_products)(column + 4, &x->high);
    return __builtin_convertvector(AMP_WIDEN(sums) + total, Sums);
}

/* The same for a set. */
AMP_INLINE Row AMP_NAME(next_row)(Row row, const double (*column)[16], const Factors *x,
                                  Product product)
{
#if AMP_BYTES == 64
    return (Row)AMP_NAME(next_sums)((Sums)row, column, x, product);
#else
    __m256 both = (__m256)row;
    const double(*upper)[16] = (const double(*)[16]) & column[0][4];
    Sums low = AMP_NAME(next_sums)((Sums)_mm256_castps256_ps128(both), column, x, product);
    Sums high = AMP_NAME(next_sums)((Sums)_mm256_extractf128_ps(both, 1), upper, x, product);
    return (Row)_mm256_insertf128_ps(_mm256_castps128_ps256((__m128)low), (__m128)high, 1);
#endif
}

/* Bit 15 of each half becomes 1 when its exponent is 31. */
INLINE uint64_t AMP_NAME(full_exponents)(uint64_t halves)
{
    return (halves & 0x7fff7fff7fff7fff) + 0x0400040004000400;
}

/* One issue with the column of its phase. Phase 0 has exchanged the unit before. */
AMP_INLINE bool AMP_NAME(issue_plainly)(AMP_NAME(Unit) * unit, const double (*column)[16],
                                        const Factors *x, uint64_t partials, Product product,
                                        uint64_t *leaving)
{
    const double(*second)[16] = (const double(*)[16]) & column[0][8];
    Row live0 = AMP_NAME(next_row)(unit->live0, column, x, product);
    Row live1 = AMP_NAME(next_row)(unit->live1, second, x, product);
    Lanes results = two_and_two(&unit->chain0, &unit->chain1);
    uint64_t halves = (uint64_t)_mm_cvtsi128_si64(_mm_cvtps_ph((__m128)results, 0));
    uint64_t full = AMP_NAME(full_exponents)(halves) | AMP_NAME(full_exponents)(partials);
    bool special = AMP_NOT_FINITE(live0, live1) | ((full & 0x8000800080008000) != 0);
    if (__builtin_expect(special, 0))
        return false;
    *leaving = halves;
    Lanes entering = AMP_NAME(widen)(partials);
    shift(&unit->chain0, entering, false, 8);
    shift(&unit->chain1, entering, true, 8);
    unit->live0 = live0;
    unit->live1 = live1;
    return true;
}

/* A whole instruction. False: not plain. */
AMP_INLINE bool AMP_NAME(amp_plainly)(FloatState *state, Weights *weights, const int32_t *operand,
                                      unsigned phase, Product product)
{
    if (__builtin_expect(state->control & CONTROL_ESR, 0))
        return false;
    want_weights(weights, state, product);
    Factors x = AMP_NAME(factors_of)(state, load_pair(state, operand[1]), product);
    AMP_NAME(Unit)
    unit = phase == 0 ? AMP_NAME(load_unit)(state->chain, state->live)
                      : AMP_NAME(load_unit)(state->live, state->chain);
    uint64_t leaving;
    if (!AMP_NAME(issue_plainly)(&unit, weights->lane[phase], &x, load_pair(state, operand[2]),
                                 product, &leaving))
        return false;
    AMP_NAME(store_unit)(state, &unit);
    store_pair(state, operand[0], leaving);
    return true;
}

/* ---- Stretches ---- */

/* $a0:1 .. $a6:7, the pairs that read zero, and where dropped writes go. */
enum { AMP_NAME(PAIRS) = FLOAT_DROPPED + 1, AMP_NAME(PAIR_BYTES) = 8 * 4 };

AMP_INLINE void AMP_NAME(stretch)(FloatState *state, Weights *weights, uint8_t *memory,
                                  const FloatOp *const *ops, const FloatAccess *accesses,
                                  uint32_t count, Product product)
{
    uint64_t pair[AMP_NAME(PAIRS)] = {0};
    AMP_NAME(Unit) unit = AMP_NAME(load_unit)(state->live, state->chain);
    want_weights(weights, state, product);
    memcpy(pair, state->a, AMP_NAME(PAIR_BYTES));
    for (uint32_t i = 0; i < count; i++) {
        const FloatOp *op = ops[i];
        uint32_t kind = op->kind;
        uint64_t loaded[2] = {0, 0};
        if (kind & FLOAT_LOAD)
            loaded[0] = load_u64(memory + accesses[i].load[0]);
        if (kind & FLOAT_LOAD_SECOND)
            loaded[1] = load_u64(memory + accesses[i].load[1]);
        if (kind & FLOAT_STORE)
            store_u64(memory + accesses[i].store, pair[op->store]);
        if (kind & FLOAT_AMP) {
            Factors x = AMP_NAME(factors_of)(state, pair[op->x], product);
            if (op->phase == 0)
                AMP_NAME(exchange_unit)(&unit);
            if (__builtin_expect(!AMP_NAME(issue_plainly)(&unit, weights->lane[op->phase], &x,
                                                          pair[op->partials], product,
                                                          &pair[op->result]),
                                 0)) {
                if (op->phase == 0)
                    AMP_NAME(exchange_unit)(&unit);
                AMP_NAME(store_unit)(state, &unit);
                memcpy(state->a, pair, AMP_NAME(PAIR_BYTES));
                op->aux(state, weights, op->operand);
                memcpy(pair, state->a, AMP_NAME(PAIR_BYTES));
                unit = AMP_NAME(load_unit)(state->live, state->chain);
            }
        }
        if (kind & FLOAT_LOAD)
            pair[op->load[0]] = loaded[0];
        if (kind & FLOAT_LOAD_SECOND)
            pair[op->load[1]] = loaded[1];
    }
    memcpy(state->a, pair, AMP_NAME(PAIR_BYTES));
    AMP_NAME(store_unit)(state, &unit);
}

#define AMP_STRETCH(name, product)                                                                 \
    AMP_TARGET static void AMP_NAME(stretch_##name)(FloatState * state, Weights * weights,         \
                                                    uint8_t * memory, const FloatOp *const *ops,   \
                                                    const FloatAccess *accesses, uint32_t count)   \
    {                                                                                              \
        AMP_NAME(stretch)(state, weights, memory, ops, accesses, count, product);                  \
    }
AMP_STRETCH(halves, HALVES)
AMP_STRETCH(quarters, QUARTERS)

static FloatStretch *AMP_NAME(amp_stretch)(Form form)
{
    return form == FORM_f16v4hihov4amp_aaan_ef  ? AMP_NAME(stretch_halves)
           : form == FORM_f8v8hihov4amp_aaan_ef ? AMP_NAME(stretch_quarters)
                                                : NULL;
}
#undef AMP_STRETCH
