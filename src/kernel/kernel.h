/* kernel.h - the device kernels: contracts, costs, host references, specialised objects.
 *
 * A family is one kernels/NAME.S and one src/kernel/NAME.c. A spec is a family with its parameters;
 * from a spec alone follow: operands, scalars, symbol, -D defines of the specialised object, cycles
 * from call to return (launch and join included, sampling not), and the reference result. Planner,
 * tile expansion, placement, emission and tests all read the contract.
 *
 * Calling convention (memory-boot-package.md 3.1, ours): supervisor `call $m10, symbol`; operands'
 * addresses in $m2, $m3, ... in contract order (outputs first), then scalars in the following
 * registers, the last usable is $m9. $m11 is the stack; $m0..$m9 and all worker state are lost.
 * Kernels that need more than 8 arguments take a pointer to a constant block instead (none yet). */
#ifndef IPU_KERNEL_KERNEL_H
#define IPU_KERNEL_KERNEL_H

#include "as/as.h"
#include "obj/obj.h"
#include "target/target.h"
#include "tensor/tensor.h"

enum { KERNEL_PARAMETERS = 12, KERNEL_OPERANDS = 8, KERNEL_DEFINES = 12 };

typedef enum KernelFamily {
    KERNEL_GEMM,
    KERNEL_REDUCE_SUM,
    KERNEL_ADD,
    KERNEL_GELU,
    KERNEL_BIAS_GELU,
    KERNEL_LAYER_NORM,
    KERNEL_SOFTMAX,
    KERNEL_ATTENTION_MERGE,
    KERNEL_CAST,
    KERNEL_PACK,
    KERNEL_UNPACK,
    KERNEL_COPY,
    KERNEL_FILL_ZERO,
    KERNEL_MOMENTS,
    KERNEL_APPLY_NORM,
    KERNEL_FAMILIES
} KernelFamily;

/* Parameters by family; unused ones are 0. Every index is named here once. */
enum { /* KERNEL_GEMM: C[rows, columns] (+)= L[rows, inner] W[inner, columns]; C is F16.
          L: Left order, W: the stream of 512-byte micro-panels [column group][inner group],
          C: Left order (or packed: panels of 16 rows x 16 columns, groups of all columns). */
       GEMM_PRECISION, /* F16 or F8F143 */
       GEMM_ROWS,
       GEMM_INNER,
       GEMM_COLUMNS,     /* physical; inner % 16 (32 F8) = 0, columns % 16 = 0 */
       GEMM_ACCUMULATE,  /* 1: adds to C; 0: initialises C */
       GEMM_INTERLEAVED, /* 1: weights in interleaved memory, ld128putcs */
       GEMM_PACKED,      /* 1: packed output order */
       GEMM_SCALE,       /* F8: sum of the operands' exponents */
       GEMM_LEFT_PITCH   /* 0: L in Left order; else row-major, elements from row to row: one bundle
                            more   a launch */
};
enum { /* REDUCE_SUM: partials in all, >= 2: a seed and a dense stack of the others; gelu = 1: GELU
          of the sum. interleaved = 1: seed and stack in interleaved memory, elements % 8 = 0:
          summed in F32 and rounded once, in little more than half the time */
       REDUCE_ELEMENTS,
       REDUCE_PARTIALS,
       REDUCE_GELU,
       REDUCE_INTERLEAVED
};
enum { /* ADD: out = a + b; b has panels x columns elements and is repeated over rows in each panel:
          element e of a is [panel][row][column]. rows = 1 means equal sizes. second = 1: out = (a +
          b) + c, operands out, a, b, c; c has a's size (bias and residual in one call). apart = 1:
          the contract may ask for different memory elements, for up to three times the speed */
       ADD_PANELS,
       ADD_ROWS,
       ADD_COLUMNS,
       ADD_SECOND,
       ADD_APART
};
enum { GELU_ELEMENTS };
enum { BIAS_GELU_PANELS, BIAS_GELU_ROWS, BIAS_GELU_COLUMNS };
enum { /* LAYER_NORM: row-major [rows, columns], operands out, x, scale, bias; add = 1: x = a + b,
          which is stored too: operands out, sum, a, b, scale, bias (sum may lie in a) */
       LAYER_NORM_ROWS,
       LAYER_NORM_COLUMNS,
       LAYER_NORM_EPSILON_BITS,
       LAYER_NORM_ADD
};
enum { /* SOFTMAX: scores F16 Left [rows, padded keys] -> exponentials (same order, padding zero)
          and statistics F32 [2, rows] (scaled maximum, sum); scale = F32 bits */
       SOFTMAX_ROWS,
       SOFTMAX_KEYS,
       SOFTMAX_PADDED_KEYS,
       SOFTMAX_SCALE_BITS
};
enum { /* ATTENTION_MERGE: state F32, values F16 Left [rows, padded columns], statistics.
          final writes F16 row-major [rows, columns] */
       MERGE_ROWS,
       MERGE_COLUMNS,
       MERGE_PADDED_COLUMNS,
       MERGE_INITIAL,
       MERGE_FINAL
};
enum { /* CAST: F16 <-> F32, F16 <-> F8F143. panel rows > 0 (F16 to F8 only): elements are Left
          panels of that many rows; 16-wide ones become 32-wide ones, a last odd one is filled up
          with zeros */
       CAST_FROM,
       CAST_TO,
       CAST_ELEMENTS,
       CAST_SCALE,
       CAST_PANEL_ROWS
};
enum { /* PACK: row-major [matrices, rows, columns] F16, row pitch in elements -> order, physical
          extents, padding written as zero. UNPACK is the inverse (padding skipped). */
       PACK_ORDER,
       PACK_MATRICES,
       PACK_ROWS,
       PACK_COLUMNS,
       PACK_PHYSICAL_ROWS,
       PACK_PHYSICAL_COLUMNS,
       PACK_ROW_BLOCK,
       PACK_PITCH
};
enum { /* COPY: rows of bytes with pitches; everything a multiple of 4; out and in do not overlap.
          apart = 1: the contract may ask for different memory elements, for twice the speed */
       COPY_ROWS,
       COPY_ROW_BYTES,
       COPY_OUT_PITCH,
       COPY_IN_PITCH,
       COPY_APART
};
enum { FILL_BYTES };
enum { /* MOMENTS: mean and variance of row-major rows, F32 [rows, 2]; operands out, x, or (add = 1:
          x = a + b) out, sum, a, b */
       MOMENTS_ROWS,
       MOMENTS_COLUMNS,
       MOMENTS_ADD
};
enum { /* APPLY_NORM: layer norm of a tile's slice of columns from the moments of all slices, F32
          [parts, rows, 2], all slices equally wide; operands out, x, moments, scale, bias */
       APPLY_NORM_ROWS,
       APPLY_NORM_COLUMNS,
       APPLY_NORM_PARTS,
       APPLY_NORM_EPSILON_BITS
};

typedef struct KernelSpec {
    uint16_t family;
    int32_t p[KERNEL_PARAMETERS];
} KernelSpec;

typedef enum PaddingNeed { PADDING_ANYTHING, PADDING_FINITE, PADDING_ZERO } PaddingNeed;

typedef struct OperandContract {
    const char *name;
    bool output;    /* written (and maybe read) */
    bool reads_old; /* an output whose old contents matter */
    Precision precision;
    Order order;
    uint32_t bytes; /* payload, physical */
    uint32_t align;
    uint8_t memory_class; /* MEMORY_INTERLEAVED: must be; MEMORY_STANDARD: anywhere */
    uint32_t tail;        /* bytes that may be read past the payload (values do not matter) */
    uint8_t need;         /* PaddingNeed on entry */
    uint8_t held;         /* PaddingNeed that holds for the padding after the call (outputs) */
    int8_t in_place;      /* this output may be the same buffer as that operand; -1: none */
} OperandContract;

typedef struct KernelContract {
    uint32_t operand_count;
    OperandContract operands[KERNEL_OPERANDS]; /* outputs first, in register order */
    uint16_t separate[KERNEL_OPERANDS]; /* bit j of [i]: operands i and j in different elements */
    uint32_t scalar_count;
    int32_t scalars[KERNEL_OPERANDS]; /* register values after the operands */
    uint32_t define_count;            /* the specialised object: */
    struct {
        char name[28];
        int32_t value;
    } defines[KERNEL_DEFINES];
    char symbol[64]; /* entry; objects with equal source and defines are shared */
    uint32_t stack_bytes;
} KernelContract;

/* Fails, naming the parameter, when the family can not do it. */
Status kernel_contract(const KernelSpec *spec, KernelContract *out);
/* From the issue of the first instruction after the call to the return: closed formula. */
uint64_t kernel_cycles(const KernelSpec *spec);
/* FLOP or element operations that count as useful, for reports. */
uint64_t kernel_useful_cycles(const KernelSpec *spec);
/* What the device computes, on host memory (operands in contract order). Bit-exact where the family
 * file says so, else within the family's tolerance. */
Status kernel_reference(const KernelSpec *spec, void *const *operands);
const char *kernel_family_name(KernelFamily family);
bool kernel_family_find(const char *name, KernelFamily *out);
const char *kernel_parameter_name(KernelFamily family, uint32_t index); /* NULL: not used */
void kernel_spec_print(Text *text, const KernelSpec *spec);
bool kernel_spec_equal(const KernelSpec *a, const KernelSpec *b);

/* One specialised object per distinct (source, defines): assembled on demand, cached on disk by
 * content under cache_folder() (NULL cache: no disk). runtime.S is always among them. */
typedef struct KernelObjects { /* memory in the arena */
    AsObject **objects;
    const char **names;
    uint32_t count;
    uint32_t cache_hits;
} KernelObjects;
Status kernels_build(Arena *arena, const KernelSpec *specs, size_t count, const char *cache,
                     Pool *pool, KernelObjects *out);
const char *kernel_source(const char *name); /* embedded kernels/NAME, NULL when unknown */

#endif
