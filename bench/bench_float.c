/* libraries: sim */
/* bench_float.c - nanoseconds per instruction of the auxiliary lane, through the handlers as the
 * core calls them. Prints key=value lines. The arguments of the program choose operations by name.
 */
#include "sim/float_impl.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct Operation {
    const char *name;
    Form form;
    int32_t operand[ISA_OPERANDS];
    uint32_t control;
    int rotate; /* operand that counts through the four phases, or -1 */
} Operation;

enum { ESR = 1 << 19 };

static const Operation OPERATIONS[] = {
    {"f16v4hihov4amp", FORM_f16v4hihov4amp_aaan_ef, {0, 2, 4}, 0, 3},
    {"f16v4hihov4amp_stochastic", FORM_f16v4hihov4amp_aaan_ef, {0, 2, 4}, ESR, 3},
    {"f8v8hihov4amp", FORM_f8v8hihov4amp_aaan_ef, {0, 2, 4}, 0, 3},
    {"f8v8hihov4amp_stochastic", FORM_f8v8hihov4amp_aaan_ef, {0, 2, 4}, ESR, 3},
    {"f16v4sisoamp", FORM_f16v4sisoamp_aaan_ef, {0, 2, 4}, 0, 3},
    {"f32sisov2amp", FORM_f32sisov2amp_aaan_ef, {0, 2, 4}, 0, 3},
    {"f16v4hihov4slic", FORM_f16v4hihov4slic_aaan_ef, {0, 2, 4, 0}, 0, -1},
    {"f16v4add", FORM_f16v4add_aaan, {0, 2, 4}, 0, -1},
    {"f16v4mul_broadcast", FORM_f16v4mul_aaal, {0, 2, 4}, 0, -1},
    {"f16v4max", FORM_f16v4max_aaan, {0, 2, 4}, 0, -1},
    {"f16v4cmplt", FORM_f16v4cmplt_aaan, {0, 2, 4}, 0, -1},
    {"f16v4mix", FORM_f16v4mix_aaan, {0, 2, 4}, 0, -1},
    {"f16v4mix_stochastic", FORM_f16v4mix_aaan, {0, 2, 4}, ESR, -1},
    {"f16v2exp", FORM_f16v2exp_aaan, {0, 2}, 0, -1},
    {"f16v2tanh", FORM_f16v2tanh_aaan, {0, 2}, 0, -1},
    {"f16v8acc", FORM_f16v8acc_aaan, {4}, 0, -1},
    {"f32v4sqacc", FORM_f32v4sqacc_aaan, {4}, 0, -1},
    {"f32v2mul", FORM_f32v2mul_aaan, {0, 2, 4}, 0, -1},
    {"f32v2axpy", FORM_f32v2axpy_aaan, {0, 2, 4}, 0, -1},
    {"f32exp", FORM_f32exp_aaan, {0, 2}, 0, -1},
    {"f32oox", FORM_f32oox_aaan, {0, 2}, 0, -1},
    {"f32oorx", FORM_f32oorx_aaan, {0, 2}, 0, -1},
    {"f32v4tof16", FORM_f32v4tof16_aaan, {0, 4}, 0, -1},
    {"f16v8tof8", FORM_f16v8tof8_aaan, {0, 4}, 0, -1},
    {"f8v4tof16", FORM_f8v4tof16_aaan, {0, 4}, 0, -1},
    {"f32v2gina", FORM_f32v2gina_aaan_zi, {0, 14, 0}, 0, -1},
    {"or64", FORM_or64_aaan, {0, 2, 4}, 0, -1},
};

/* Six contexts in turn, as the barrel issues them. */
static double nanoseconds(const Operation *operation, FloatExecute *execute, uint32_t rounds)
{
    Weights *weights = aligned_alloc(64, round_up_u32(sizeof *weights, 64));
    if (!weights)
        fatal_out_of_memory();
    memset(weights, 0, sizeof *weights);
    for (uint32_t i = 0; i < 64; i++)
        weights_write(weights, i, 0x2c00280030002800 ^ (uint64_t)i << 40);
    FloatState states[6] = {0};
    for (unsigned i = 0; i < 6; i++) {
        for (unsigned r = 2; r < 8; r++)
            states[i].a[r] = 0x3c003a00 + 16 * r + i;
        states[i].tas = 0x3c003c00;
        states[i].control = operation->control;
        states[i].formats = 3;
        states[i].prng[0] = i + 1;
    }
    int32_t operand[4][ISA_OPERANDS];
    for (int phase = 0; phase < 4; phase++) {
        memcpy(operand[phase], operation->operand, sizeof operand[phase]);
        if (operation->rotate >= 0)
            operand[phase][operation->rotate] = phase;
    }
    double best = 1e9;
    for (int repeat = 0; repeat < 40; repeat++) {
        for (unsigned i = 0; i < 6; i++) { /* sums of many rounds stay finite */
            memset(states[i].live, 0, sizeof states[i].live);
            memset(states[i].chain, 0, sizeof states[i].chain);
        }
        double start = seconds_now();
        for (uint32_t n = 0; n < rounds; n++)
            for (unsigned i = 0; i < 6; i++)
                execute(&states[i], weights, operand[n & 3]);
        double time = (seconds_now() - start) * 1e9 / (6.0 * rounds);
        best = time < best ? time : best;
    }
    free(weights);
    return best;
}

static bool chosen(const char *name, int count, char **names)
{
    for (int i = 1; i < count; i++)
        if (strstr(name, names[i]))
            return true;
    return count < 2;
}

int main(int argument_count, char **arguments)
{
    static const char *const HOSTS[] = {"portable", "avx2", "avx512"};
    for (size_t i = 0; i < countof(OPERATIONS); i++) {
        const Operation *operation = &OPERATIONS[i];
        if (!chosen(operation->name, argument_count, arguments))
            continue;
        printf("%s_ns=%.2f\n", operation->name,
               nanoseconds(operation, float_handler(operation->form), 3000));
        for (int host = 0; host <= (int)float_host(); host++) {
            FloatExecute *execute = float_handler_for(operation->form, (Host)host);
            if (execute)
                printf("%s_%s_ns=%.2f\n", operation->name, HOSTS[host],
                       nanoseconds(operation, execute, 3000));
        }
    }
    return 0;
}
