/* libraries: sim */
/* test_sim_float_amp.c - the matrix unit: matrix products of every form, shortened chains, the
 * versions for different hosts against each other and against a plain model of the state machine.
 */
#include "check.h"

#include "float_case.h"
#include "sim/float_impl.h"

#include <math.h>

/* ---- A plain model: one set of arrays, one loop, one rule ---- */

static double half_value(uint32_t half)
{
    int exponent = half >> 10 & 31, mantissa = half & 0x3ff;
    double value = exponent == 0    ? ldexp(mantissa, -24)
                   : exponent == 31 ? (mantissa ? NAN : INFINITY)
                                    : ldexp(1024 + mantissa, exponent - 25);
    return half & 0x8000 ? -value : value;
}

static double quarter_value(uint32_t code, bool f143)
{
    int bits = f143 ? 3 : 2, bias = f143 ? 8 : 16;
    int exponent = (int)(code & 0x7f) >> bits, mantissa = (int)code & ((1 << bits) - 1);
    if (code == 0x80)
        return NAN;
    double value = exponent == 0 ? ldexp(mantissa, 1 - bias - bits)
                                 : ldexp((1 << bits) + mantissa, exponent - bias - bits);
    return code & 0x80 ? -value : value;
}

static float single_value(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t single_code(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return value != value ? 0x7fc00000 : bits;
}

/* The half nearest to a finite value: the best of all, an even code on a tie. Saturates. */
static uint32_t half_code(double value)
{
    uint32_t sign = signbit(value) ? 0x8000 : 0, best = 0;
    double magnitude = fabs(value);
    if (magnitude >= 65520)
        return sign | 0x7bff;
    for (uint32_t low = 0, high = 0x7bff; low <= high;) { /* greatest code not above */
        uint32_t middle = (low + high) / 2;
        if (half_value(middle) <= magnitude) {
            best = middle;
            low = middle + 1;
        } else if (middle == 0) {
            break;
        } else {
            high = middle - 1;
        }
    }
    double below = magnitude - half_value(best), above = half_value(best + 1) - magnitude;
    if (best < 0x7bff && (above < below || (above == below && best & 1)))
        best++;
    return sign | best;
}

/* A worker's unit as in the description: two banks, exchanged at phase 0. */
typedef struct Model {
    float live[2][8], chain[2][8];
} Model;

static void model_accumulate(Model *model, const Weights *weights, unsigned sets, unsigned units,
                             unsigned column, const double *x, unsigned lanes, bool f143,
                             double scale)
{
    for (unsigned set = 0; set < sets; set++) {
        for (unsigned unit = 0; unit < units; unit++) {
            uint64_t raw = weights->raw[32 * set + 4 * unit + column];
            double sum[2] = {0, 0};
            for (unsigned i = 0; i < lanes; i++) {
                double weight = lanes == 4 ? half_value(raw >> 16 * i & 0xffff)
                                           : quarter_value(raw >> 8 * i & 255, f143);
                double product = x[i] * scale * weight;
                sum[i / 4] = i % 4 == 0 ? product : sum[i / 4] + product;
            }
            double total = lanes == 8 ? sum[0] + sum[1] : sum[0];
            model->live[set][unit] = (float)((double)model->live[set][unit] + total);
        }
    }
}

static void model_exchange(Model *model, unsigned sets, unsigned units)
{
    for (unsigned set = 0; set < sets; set++)
        for (unsigned unit = 0; unit < units; unit++) {
            float value = model->live[set][unit];
            model->live[set][unit] = model->chain[set][unit];
            model->chain[set][unit] = value;
        }
}

static void model_shift(Model *model, unsigned set, unsigned units, const float *entering,
                        float *leaving)
{
    float *chain = model->chain[set];
    leaving[0] = chain[0];
    leaving[1] = chain[1];
    for (unsigned i = 0; i + 2 < units; i++)
        chain[i] = chain[i + 2];
    chain[units - 2] = entering[0];
    chain[units - 1] = entering[1];
}

static FloatState as_state(const Model *model)
{
    FloatState state = {0};
    for (unsigned i = 0; i < 16; i++) {
        state.live[i] = single_code(model->live[i / 8][i % 8]);
        state.chain[i] = single_code(model->chain[i / 8][i % 8]);
    }
    return state;
}

/* Values whose sums stay far below the limits of a half's F32 relatives. */
static uint32_t tame_half(Random *random)
{
    return (uint32_t)random_next(random) & 0xbfff; /* below 2 */
}

static void fill_weights(Weights *weights, Random *random, bool halves)
{
    for (uint32_t i = 0; i < 64; i++) {
        uint64_t raw = 0;
        for (unsigned n = 0; n < 4; n++)
            raw |= (uint64_t)tame_half(random) << 16 * n;
        weights_write(weights, i, halves ? raw : random_next(random) & 0xbfbfbfbfbfbfbfbf);
    }
    for (uint32_t i = 0; i < 64; i++) /* no quarter NaN */
        for (unsigned n = 0; n < 8 && !halves; n++)
            if ((weights->raw[i] >> 8 * n & 255) == 0x80)
                weights_write(weights, i, weights->raw[i] ^ (uint64_t)0x80 << 8 * n);
}

/* Random issues of f16v4hihov4amp and f8v8hihov4amp with all chain lengths against the model. */
static void wide_forms_follow_the_model(void **test)
{
    (void)test;
    Random random = {1};
    Weights *weights = xcalloc(1, sizeof *weights);
    for (unsigned round = 0; round < 400; round++) {
        bool halves = round & 1, f143 = round & 2, weights_f143 = round & 4;
        unsigned engines = 4 >> (round / 8 % 3), units = 2 * engines;
        fill_weights(weights, &random, halves);
        Model model = {0};
        FloatState state = {0};
        state.formats = (f143 ? 2 : 0) | (weights_f143 ? 1 : 0);
        state.scale = halves ? 0 : (round % 9 - 4) & 63;
        for (unsigned issue = 0; issue < 40; issue++) {
            int32_t phase = (int32_t)(issue % engines);
            uint64_t raw = random_next(&random) & (halves ? 0xbfffbfffbfffbfff : ~(uint64_t)0);
            double x[8];
            for (unsigned i = 0; i < 8; i++) {
                if ((raw >> 8 * i & 255) == 0x80 && !halves)
                    raw ^= (uint64_t)0x80 << 8 * i;
                x[i] = halves ? half_value(raw >> 16 * (i & 3) & 0xffff)
                              : quarter_value(raw >> 8 * i & 255, f143);
            }
            float entering[4], leaving[4];
            uint64_t partials = 0;
            for (unsigned i = 0; i < 4; i++) {
                uint32_t half = tame_half(&random);
                partials |= (uint64_t)half << 16 * i;
                entering[i] = (float)half_value(half);
            }
            if (phase == 0)
                model_exchange(&model, 2, units);
            model_accumulate(&model, weights, 2, units, (unsigned)phase, x, halves ? 4 : 8,
                             weights_f143, halves ? 1 : ldexp(1, (int)(round % 9) - 4));
            model_shift(&model, 0, units, entering, leaving);
            model_shift(&model, 1, units, entering + 2, leaving + 2);

            memcpy(&state.a[2], &raw, 8);
            memcpy(&state.a[4], &partials, 8);
            int32_t operand[] = {0, 2, 4, phase | (engines == 4 ? 0 : engines == 2 ? 16 : 32)};
            FloatExecute *execute =
                float_handler(halves ? FORM_f16v4hihov4amp_aaan_ef : FORM_f8v8hihov4amp_aaan_ef);
            assert_int_equal(execute(&state, weights, operand), 0);
            FloatState wanted = as_state(&model);
            assert_memory_equal(state.live, wanted.live, sizeof state.live);
            assert_memory_equal(state.chain, wanted.chain, sizeof state.chain);
            for (unsigned i = 0; i < 4; i++)
                assert_int_equal(state.a[i / 2] >> 16 * (i & 1) & 0xffff,
                                 half_code((double)leaving[i]));
        }
    }
    free(weights);
}

/* ---- Matrix products: rows x K times K x channels, in groups of the hardware's size ---- */

typedef struct MatrixForm {
    const char *name;
    Form form;
    unsigned lanes;  /* of x in one issue */
    unsigned phases; /* of a group */
    unsigned channels;
    unsigned flag; /* E4 0, E2 16, E1 32 */
    bool wide;     /* both sets */
} MatrixForm;

static const MatrixForm PRODUCTS[] = {
    {"f16 wide E4", FORM_f16v4hihov4amp_aaan_ef, 4, 4, 16, 0, true},
    {"f16 wide E2", FORM_f16v4hihov4amp_aaan_ef, 4, 2, 8, 16, true},
    {"f16 wide E1", FORM_f16v4hihov4amp_aaan_ef, 4, 1, 4, 32, true},
    {"f16 hiho E4", FORM_f16v4hihoamp_aaan_ef, 4, 4, 8, 0, false},
    {"f16 hiho E2", FORM_f16v4hihoamp_aaan_ef, 4, 2, 4, 16, false},
    {"f16 hiho E1", FORM_f16v4hihoamp_aaan_ef, 4, 1, 2, 32, false},
    {"f16 siho E4", FORM_f16v4sihoamp_aaan_ef, 4, 4, 8, 0, false},
    {"f16 siso E4", FORM_f16v4sisoamp_aaan_ef, 4, 4, 8, 0, false},
    {"f16 siso E2", FORM_f16v4sisoamp_aaan_ef, 4, 2, 4, 16, false},
    {"f8 wide E4", FORM_f8v8hihov4amp_aaan_ef, 8, 4, 16, 0, true},
    {"f32 wide E4", FORM_f32sisov2amp_aaan_ef, 1, 8, 16, 0, true},
    {"f32 E4", FORM_f32sisoamp_aaan_ef, 1, 8, 8, 0, false},
    {"f32 E2", FORM_f32sisoamp_aaan_ef, 1, 4, 4, 16, false},
};

enum { ROWS = 5, MAX_K = 32, MAX_CHANNELS = 16 };

/* Unit of a channel so that channels leave in natural order. */
static uint32_t weight_entry(const MatrixForm *product, unsigned channel)
{
    if (!product->wide)
        return 4 * channel;
    return 32 * (channel >> 1 & 1) + 8 * (channel >> 2) + 4 * (channel & 1);
}

/* An integer -4..4 as a half, quarter (F143) or single. */
static uint32_t small_code(const MatrixForm *product, int value)
{
    float magnitude = (float)abs(value);
    uint32_t sign = value < 0;
    if (product->lanes == 1)
        return single_code((float)value);
    if (product->lanes == 4)
        return half_code(value);
    for (uint32_t code = 0; code < 0x80; code++)
        if (quarter_value(code, true) == (double)magnitude)
            return value == 0 ? 0 : code | sign << 7;
    return 0x80;
}

static void set_x(FloatState *state, const MatrixForm *product, const int *values, unsigned phase)
{
    uint64_t raw = 0;
    for (unsigned i = 0; i < product->lanes; i++)
        raw |= (uint64_t)small_code(product, values[phase * product->lanes + i])
               << (64 / product->lanes % 64) * i;
    if (product->lanes == 1)
        raw = small_code(product, values[phase]);
    memcpy(&state->a[2], &raw, 8);
}

/* Which phases give results, how many, and from which register. */
static unsigned results_in_phase(const MatrixForm *product, unsigned phase)
{
    if (product->lanes == 1 && !product->wide)
        return phase & 1 ? 0 : 2;
    return product->wide && product->lanes != 1 ? 4 : 2;
}

static bool half_results(Form form)
{
    return form != FORM_f16v4sisoamp_aaan_ef && form != FORM_f32sisov2amp_aaan_ef &&
           form != FORM_f32sisoamp_aaan_ef;
}

static bool half_partials(Form form)
{
    return half_results(form) && form != FORM_f16v4sihoamp_aaan_ef;
}

static void set_partials(FloatState *state, const MatrixForm *product, const double *values,
                         unsigned count)
{
    state->a[4] = state->a[5] = 0;
    for (unsigned i = 0; i < count; i++) {
        if (half_partials(product->form))
            state->a[4 + i / 2] |= half_code(values[i]) << 16 * (i & 1);
        else
            state->a[4 + i] = single_code((float)values[i]);
    }
}

static double result(const FloatState *state, const MatrixForm *product, unsigned i)
{
    return half_results(product->form) ? half_value(state->a[i / 2] >> 16 * (i & 1) & 0xffff)
                                       : (double)single_value(state->a[i]);
}

/* One group of phases: partials `in` enter for the next row, results of the row before leave. */
static void run_group(FloatState *state, Weights *weights, const MatrixForm *product, const int *x,
                      const double *in, double *out)
{
    unsigned at = 0;
    static const int ZEROS[MAX_K];
    for (unsigned phase = 0; phase < product->phases; phase++) {
        unsigned count = results_in_phase(product, phase);
        set_x(state, product, x ? x : ZEROS, phase);
        set_partials(state, product, in + at, in ? count : 0);
        int32_t operand[] = {0, 2, 4, (int32_t)(phase | product->flag)};
        assert_int_equal(float_handler(product->form)(state, weights, operand), 0);
        for (unsigned i = 0; i < count && out; i++)
            out[at + i] = result(state, product, i);
        at += count;
    }
    assert_int_equal(at, product->channels);
}

static void run_product(const MatrixForm *product)
{
    Random random = {7};
    unsigned depth = product->lanes * product->phases;
    int x[ROWS][MAX_K], w[MAX_K][MAX_CHANNELS];
    double partials[ROWS + 1][MAX_CHANNELS] = {0}, out[MAX_CHANNELS];
    for (unsigned k = 0; k < depth; k++) {
        for (unsigned r = 0; r < ROWS; r++)
            x[r][k] = (int)(random_next(&random) % 9) - 4;
        for (unsigned c = 0; c < product->channels; c++)
            w[k][c] = (int)(random_next(&random) % 9) - 4;
    }
    for (unsigned r = 0; r < ROWS; r++)
        for (unsigned c = 0; c < product->channels; c++)
            partials[r][c] = (int)(random_next(&random) % 100) - 50;

    Weights *weights = xcalloc(1, sizeof *weights);
    unsigned per_entry = product->lanes == 1 ? 2 : product->lanes;
    for (unsigned c = 0; c < product->channels; c++) {
        uint64_t raw = 0;
        for (unsigned k = 0; k < depth; k++) {
            unsigned shift = 64 / per_entry * (k % per_entry);
            raw |= (uint64_t)small_code(product, w[k][c]) << shift;
            if ((k + 1) % per_entry == 0 || k + 1 == depth) {
                weights_write(weights, weight_entry(product, c) + k / per_entry, raw);
                raw = 0;
            }
        }
    }
    FloatState state = {0};
    state.formats = 3;
    run_group(&state, weights, product, NULL, partials[0], NULL); /* priming */
    for (unsigned r = 0; r <= ROWS; r++) {                        /* the last group drains */
        run_group(&state, weights, product, r < ROWS ? x[r] : NULL, partials[r < ROWS ? r + 1 : r],
                  out);
        for (unsigned c = 0; c < product->channels && r > 0; c++) {
            double wanted = partials[r - 1][c];
            for (unsigned k = 0; k < depth; k++)
                wanted += x[r - 1][k] * w[k][c];
            if (out[c] != wanted)
                fail_msg("%s: row %u channel %u: %g, not %g", product->name, r - 1, c, out[c],
                         wanted);
        }
    }
    assert_int_equal(state.status, 0);
    free(weights);
}

static void products_equal_plain_sums(void **test)
{
    (void)test;
    for (size_t i = 0; i < countof(PRODUCTS); i++)
        run_product(&PRODUCTS[i]);
}

/* ---- SLIC: a result is partial + the sum over the window of x(t) * weight(stage) ---- */

static void slic_convolves(void **test)
{
    (void)test;
    for (unsigned form = 0; form < 2; form++) {
        for (unsigned window = 3; window <= 4; window++) {
            Random random = {window};
            const unsigned steps = 12;
            int x[12][4], w[2][8][4], partial[12][4];
            Weights *weights = xcalloc(1, sizeof *weights);
            for (unsigned s = 0; s < 2; s++)
                for (unsigned u = 0; u < 8; u++) {
                    uint64_t raw = 0;
                    for (unsigned i = 0; i < 4; i++) {
                        w[s][u][i] = (int)(random_next(&random) % 9) - 4;
                        raw |= (uint64_t)half_code(w[s][u][i]) << 16 * i;
                    }
                    weights_write(weights, 32 * s + 4 * u + 1, raw); /* column W1 */
                }
            FloatState state = {0};
            for (unsigned t = 0; t < steps; t++) {
                uint64_t raw = 0;
                for (unsigned i = 0; i < 4; i++) {
                    x[t][i] = (int)(random_next(&random) % 9) - 4;
                    partial[t][i] = (int)(random_next(&random) % 9) - 4;
                    raw |= (uint64_t)half_code(x[t][i]) << 16 * i;
                }
                memcpy(&state.a[2], &raw, 8);
                for (unsigned i = 0; i < 2; i++)
                    state.a[4 + i] = form == 0 ? half_code(partial[t][2 * i]) |
                                                     half_code(partial[t][2 * i + 1]) << 16
                                               : single_code((float)partial[t][i]);
                int32_t operand[] = {0, 2, 4, 1 | (window == 3 ? 4 : 0)};
                Form f = form == 0 ? FORM_f16v4hihov4slic_aaan_ef : FORM_f16v4sisoslic_aaan_ef;
                assert_int_equal(float_handler(f)(&state, weights, operand), 0);
                for (unsigned lane = 0; lane < (form == 0 ? 4 : 2) && t >= window; lane++) {
                    /* Entered at t - window; stage n - 1 - j at issue t - window + j. */
                    unsigned start = t - window, set = lane / 2;
                    double wanted = partial[start][lane];
                    for (unsigned j = 0; j < window; j++)
                        for (unsigned i = 0; i < 4; i++)
                            wanted += x[start + j][i] * w[set][2 * (window - 1 - j) + lane % 2][i];
                    double got = form == 0
                                     ? half_value(state.a[lane / 2] >> 16 * (lane & 1) & 0xffff)
                                     : (double)single_value(state.a[lane]);
                    assert_true(got == wanted);
                }
            }
            free(weights);
        }
    }
}

/* f32sisov2slic: both sets get their own partials and their own results, in turn. */
static void single_slic_serves_both_sets(void **test)
{
    (void)test;
    Random random = {3};
    int x[12][2], w[2][8][2], partial[12][2][2];
    Weights *weights = xcalloc(1, sizeof *weights);
    for (unsigned s = 0; s < 2; s++)
        for (unsigned u = 0; u < 8; u++) {
            for (unsigned i = 0; i < 2; i++)
                w[s][u][i] = (int)(random_next(&random) % 9) - 4;
            weights_write(weights, 32 * s + 4 * u,
                          single_code((float)w[s][u][0]) | (uint64_t)single_code((float)w[s][u][1])
                                                               << 32);
        }
    FloatState state = {0};
    for (unsigned t = 0; t < 12; t++) {
        for (unsigned half = 0; half < 2; half++) {
            x[t][half] = (int)(random_next(&random) % 9) - 4;
            state.a[2] = single_code((float)x[t][half]);
            for (unsigned i = 0; i < 2; i++) {
                partial[t][half][i] = (int)(random_next(&random) % 9) - 4;
                state.a[4 + i] = single_code((float)partial[t][half][i]);
            }
            int32_t operand[] = {0, 2, 4, (int32_t)half << 1};
            assert_int_equal(float_handler(FORM_f32sisov2slic_aaan_ef)(&state, weights, operand),
                             0);
            for (unsigned i = 0; i < 2 && t >= 4; i++) {
                double wanted = partial[t - 4][half][i];
                for (unsigned j = 0; j < 4; j++)
                    for (unsigned word = 0; word < 2; word++)
                        wanted += x[t - 4 + j][word] * w[half][2 * (3 - j) + i][word];
                assert_true((double)single_value(state.a[i]) == wanted);
            }
        }
    }
    free(weights);
}

/* ---- Hosts ---- */

static const Form FORMS[] = {
#define AMP_FORM(form) FORM_##form,
#include "sim/float_forms.def"
};

/* Every form, random immediates, operands and data of all kinds: all versions give the same. */
static void hosts_agree(void **test)
{
    (void)test;
    Random random = {11};
    Weights *weights = xcalloc(1, sizeof *weights);
    uint64_t special = 0;
    for (unsigned round = 0; round < 60000; round++) {
        if (round % 64 == 0) {
            for (uint32_t i = 0; i < 64; i++) {
                uint64_t raw = 0;
                for (unsigned n = 0; n < 4; n++)
                    raw |= (uint64_t)(round % 128 ? tame_half(&random) : random_half(&random))
                           << 16 * n;
                weights_write(weights, i, raw);
            }
        }
        Form form = FORMS[random_next(&random) % countof(FORMS)];
        FloatState start = random_float_state(&random);
        if (round & 1) /* tame data, so that most sums are finite */
            for (unsigned i = 0; i < 16; i++) {
                start.a[i % 8] = tame_half(&random) | tame_half(&random) << 16;
                start.live[i] = single_code((float)half_value(random_half(&random)));
                start.chain[i] = single_code((float)half_value(random_half(&random)));
            }
        uint64_t draw = random_next(&random);
        start.control |= round % 16 == 0 ? draw >> 40 & 7 : 0;
        int32_t operand[ISA_OPERANDS] = {(int32_t)(draw & 14), (int32_t)(draw >> 4 & 14),
                                         (int32_t)(draw >> 8 & 14), (int32_t)(draw >> 16 & 63)};
        FloatState plain = start;
        uint32_t exception = amp_handler(form, HOST_PORTABLE)(&plain, weights, operand);
        special += plain.status != start.status;
        for (int host = 1; host <= (int)float_host(); host++) {
            FloatState state = start;
            char where[96] = "the exception";
            if (amp_handler(form, (Host)host)(&state, weights, operand) != exception ||
                !same_state(&state, &plain, where, sizeof where))
                fail_msg("%s, host %d, immediate %d: %s", isa_form(form)->name, host, operand[3],
                         where);
        }
        if (exception) { /* nothing but the status flags may change */
            plain.status = start.status;
            assert_memory_equal(&plain, &start, sizeof start);
        }
    }
    assert_true(special > 1000);
    free(weights);
}

enum { STRETCH = 24, STRETCH_MEMORY = 1024 };

typedef struct StretchCase {
    FloatOp ops[STRETCH];
    const FloatOp *list[STRETCH];
    FloatAccess accesses[STRETCH];
    int32_t operands[STRETCH][ISA_OPERANDS];
} StretchCase;

static uint32_t some_address(Random *random)
{
    return (uint32_t)(random_next(random) % (STRETCH_MEMORY / 8)) * 8;
}

static void random_stretch(StretchCase *stretch, Random *random)
{
    for (unsigned i = 0; i < STRETCH; i++) {
        uint64_t draw = random_next(random);
        FloatOp *op = &stretch->ops[i];
        int32_t *operand = stretch->operands[i];
        operand[0] = (int32_t)(draw & 14);
        operand[1] = (int32_t)(draw >> 4 & 14);
        operand[2] = (int32_t)(draw >> 8 & 14);
        operand[3] = draw >> 12 & 7 ? (int32_t)(i & 3) : (int32_t)(draw >> 16 & 11);
        *op = (FloatOp){.operand = operand,
                        .kind = (uint8_t)(draw >> 20 & 15),
                        .load = {(uint8_t)(draw >> 24 & 3), draw >> 26 & 7 ? 1 : FLOAT_DROPPED},
                        .store = (uint8_t)(draw >> 30 & 7),
                        .x = (uint8_t)(operand[1] / 2),
                        .partials = (uint8_t)(operand[2] / 2),
                        .result = (uint8_t)(operand[0] < 8 ? operand[0] / 2 : FLOAT_DROPPED),
                        .phase = (uint8_t)(operand[3] & 3)};
        stretch->list[i] = op;
        stretch->accesses[i] =
            (FloatAccess){{some_address(random), some_address(random)}, some_address(random)};
    }
}

/* Whole stretches, mostly of tame data: all versions leave the same state and memory as handlers
 * one by one. */
static void hosts_agree_on_stretches(void **test)
{
    (void)test;
    Random random = {12};
    Weights *weights = xcalloc(1, sizeof *weights);
    uint64_t special = 0;
    for (unsigned round = 0; round < 4000; round++) {
        bool tame = round % 4 != 0, halves = round % 3 != 0;
        Form form = halves ? FORM_f16v4hihov4amp_aaan_ef : FORM_f8v8hihov4amp_aaan_ef;
        StretchCase stretch;
        uint8_t first[STRETCH_MEMORY], memory[2][STRETCH_MEMORY];
        fill_weights(weights, &random, halves);
        random_stretch(&stretch, &random);
        for (unsigned at = 0; at < sizeof first; at += 2) {
            uint32_t half = tame ? tame_half(&random) : random_half(&random);
            memcpy(first + at, &half, 2);
        }
        FloatState start = random_float_state(&random), states[2];
        start.control &= ~(1u << 19);
        for (unsigned i = 0; i < 16 && tame; i++)
            start.live[i] = start.chain[i] = single_code((float)half_value(tame_half(&random)));
        for (int host = 0; host <= (int)float_host(); host++) {
            for (unsigned i = 0; i < STRETCH; i++)
                stretch.ops[i].aux = amp_handler(form, (Host)host);
            states[host != 0] = start;
            memcpy(memory[host != 0], first, sizeof first);
            float_stretch_for(form, (Host)host)(&states[host != 0], weights, memory[host != 0],
                                                stretch.list, stretch.accesses, STRETCH);
            char where[96];
            if (host && !same_state(&states[0], &states[1], where, sizeof where))
                fail_msg("%s, host %d, round %u: %s", isa_form(form)->name, host, round, where);
            if (host)
                assert_memory_equal(memory[0], memory[1], sizeof first);
        }
        special += states[0].status != start.status;
    }
    assert_true(special > 400 && special < 3000);
    free(weights);
}

/* ---- Events ---- */

typedef struct Event {
    uint32_t x, partial, weight, live; /* half, half, half, F32 of AACC0 */
    uint32_t flags, sum;               /* AACC0 after phase 1 */
} Event;

static void sums_raise_events(void **test)
{
    (void)test;
    static const Event EVENTS[] = {
        {0x3c00, 0, 0x3c00, 0x3f800000, 0, 0x40000000},
        {0x7c00, 0, 0x0000, 0x3f800000, 1, 0x7fc00000}, /* infinity * 0 */
        {0x7c00, 0, 0x3c00, 0x3f800000, 0, 0x7f800000}, /* infinity passes */
        {0x7c00, 0, 0x3c00, 0xff800000, 1, 0x7fc00000}, /* infinity - infinity */
        {0x7e00, 0, 0x0000, 0x3f800000, 1, 0x7fc00000}, /* 0 * NaN poisons */
        {0x3c00, 0, 0x7c01, 0x3f800000, 1, 0x7fc00000},
        {0x3c00, 0, 0x3c00, 0x7f800000, 0, 0x7f800000},
        {0x3c00, 0x7c01, 0x3c00, 0x3f800000, 1, 0x40000000}, /* NaN partial */
        {0x8000, 0, 0x0000, 0x80000000, 0, 0},               /* +0: other products are +0 */
    };
    for (size_t i = 0; i < countof(EVENTS); i++) {
        const Event *event = &EVENTS[i];
        for (uint32_t enables = 0; enables < 8; enables++) {
            Weights *weights = xcalloc(1, sizeof *weights);
            weights_write(weights, 1, event->weight); /* unit 0, column 1 */
            for (uint32_t unit = 1; unit < 8; unit++) /* 0 * infinity only in unit 0 */
                weights_write(weights, 4 * unit + 1, 0x3c00);
            FloatState state = {0};
            state.control = enables;
            state.a[2] = event->x;
            state.a[4] = event->partial;
            state.live[0] = event->live;
            FloatState before = state;
            int32_t operand[] = {0, 2, 4, 1};
            uint32_t exception = float_handler(FORM_f16v4hihoamp_aaan_ef)(&state, weights, operand);
            /* Other units may see infinity or NaN from x, never an event of their own but INV. */
            uint32_t nan_x = (event->x & 0x7fff) > 0x7c00 ? 1 : 0;
            assert_int_equal(state.status, event->flags | nan_x);
            assert_int_equal(exception, state.status & enables ? 5 : 0);
            if (exception) {
                before.status = state.status;
                assert_memory_equal(&state, &before, sizeof state);
            } else {
                assert_int_equal(state.live[0], event->sum);
            }
            free(weights);
        }
    }
}

/* Products of halves cannot reach F32's limit; those of singles can. */
static void single_products_overflow(void **test)
{
    (void)test;
    Weights *weights = xcalloc(1, sizeof *weights);
    weights_write(weights, 0, 0x7f7fffff);
    for (uint32_t enables = 0; enables < 8; enables++) {
        FloatState state = {0};
        state.control = enables;
        state.a[2] = 0xc0000000;
        FloatState before = state;
        int32_t operand[] = {0, 2, 4, 0};
        uint32_t exception = float_handler(FORM_f32sisoamp_aaan_ef)(&state, weights, operand);
        assert_int_equal(state.status, 4);
        assert_int_equal(exception, enables & 4 ? 5 : 0);
        before.status = 4;
        if (exception)
            assert_memory_equal(&state, &before, sizeof state);
        else
            assert_int_equal(state.live[0], 0xff800000);
    }
    free(weights);
}

static void reserved_immediates_are_refused(void **test)
{
    (void)test;
    Weights *weights = xcalloc(1, sizeof *weights);
    FloatState state = {0};
    static const struct {
        Form form;
        int32_t immediate;
    } REFUSED[] = {{FORM_f16v4hihov4amp_aaan_ef, 4},
                   {FORM_f16v4hihov4amp_aaan_ef, 48},
                   {FORM_f32sisov2amp_aaan_ef, 48},
                   {FORM_f16v4sisoslic_aaan_ef, 8},
                   {FORM_f32sisov2slic_aaan_ef, 12}};
    for (size_t i = 0; i < countof(REFUSED); i++) {
        int32_t operand[] = {0, 2, 4, REFUSED[i].immediate};
        assert_int_equal(float_handler(REFUSED[i].form)(&state, weights, operand), 9);
    }
    free(weights);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wide_forms_follow_the_model),
        cmocka_unit_test(products_equal_plain_sums),
        cmocka_unit_test(slic_convolves),
        cmocka_unit_test(single_slic_serves_both_sets),
        cmocka_unit_test(hosts_agree),
        cmocka_unit_test(hosts_agree_on_stretches),
        cmocka_unit_test(sums_raise_events),
        cmocka_unit_test(single_products_overflow),
        cmocka_unit_test(reserved_immediates_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
