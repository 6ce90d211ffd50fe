/* internal.h - shared by the files of src/mid. */
#ifndef IPU_MID_INTERNAL_H
#define IPU_MID_INTERNAL_H

#include "mid/mid.h"

#include <string.h>

typedef struct Stored { /* a graph value: the mid value and where its elements are found in it */
    MidId value;
    Mapping mapping;
} Stored;

typedef struct Lower {
    Arena *arena;
    const Graph *graph;
    const Recipe *recipe;
    Mid *mid;
    Stored *stored;  /* per graph value */
    uint32_t *uses;  /* per graph value: operations, yields and outputs that read its memory */
    MidId *home;     /* per graph value: the operand in whose memory it is stored in shares */
    uint32_t phase;  /* of the copies being made */
    const char *key; /* of the operation being lowered */
} Lower;

MidId lower_value(Lower *l, const char *what, const TensorType *type);
/* Appends an operation; operands and results are given with a count each. */
MidOp *lower_op(Lower *l, uint8_t kind, const MidId *results, uint32_t result_count,
                const MidId *operands, uint32_t operand_count);
MidId lower_compute(Lower *l, KernelSpec kernel, MidId result, const MidId *operands,
                    uint32_t operand_count);
void lower_copy(Lower *l, MidId from, const Mapping *mapping, MidId to);

/* Input j of the operation (or any stored value) in the type wanted: the stored value itself, a
 * view of it, or a copy. extra: applied after the storage's mapping, NULL for none. into: the value
 * to copy to, MID_NONE for a new one. *fresh tells whether it is a copy of its own. */
Status lower_operand(Lower *l, ValueId value, const TensorType *type, uint8_t staging,
                     uint8_t padding, const Mapping *extra, MidId into, MidId *out, bool *fresh);
Status lower_input(Lower *l, uint32_t op, uint32_t operand, MidId *out, bool *fresh);
Status lower_broadcast(Lower *l, ValueId value, const TensorType *type, MidId into, MidId *out,
                       bool *fresh);

static inline bool is_boundary(const MidOp *op)
{
    return op->kind == MID_REPEAT || op->kind == MID_END_REPEAT;
}

Status lower_gemm(Lower *l, uint32_t op);      /* products.c */
Status lower_attention(Lower *l, uint32_t op); /* products.c */

#endif
