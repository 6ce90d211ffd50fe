/* layer_norm.S - out = (x - mean) / sqrt(variance + epsilon) * scale + bias, row by row, F16 with F32
 * statistics. With LAYER_NORM_ADD x is a + b, rounded to half, and is stored too.
 *
 * norm.inc makes the statistics and leaves d = K - x in out, K a half next to the slice's mean. The last
 * pass makes -r * (d + (mean - K)), r = 1 / sqrt(variance + epsilon) as a half, by the mix instruction in
 * F32, rounds, and applies scale and bias in F16. One launch when a worker has whole rows (PARTS = 1), else
 * two: in the second every worker combines its row's slices and finishes its own. */
.include "launch.inc"

.set PARTS, LAYER_NORM_PARTS
.set ROWS, LAYER_NORM_ROWS
.set COLUMNS, LAYER_NORM_COLUMNS
.set RECIPROCAL, LAYER_NORM_RECIPROCAL
.set ADD, LAYER_NORM_ADD
.set STORE_D, 1
.if ADD
    .set OPERANDS, 6
.else
    .set OPERANDS, 4
.endif
.set FRAME_STATISTICS, OPERANDS * 4

.macro LOAD_OPERANDS
    ld32 $m2, $mvertex_base, $mzero, 0 // out
    ld32 $m3, $mvertex_base, $mzero, 1 // x, or the sum
    ld32 $m4, $mvertex_base, $mzero, OPERANDS - 2 // scale
    ld32 $m5, $mvertex_base, $mzero, OPERANDS - 1 // bias
.endm
.include "norm.inc"

.section .text.ipu_layer_norm, "ax"
.globl ipu_layer_norm
.type ipu_layer_norm, @function
.supervisor
.align 8
ipu_layer_norm:
.if PARTS == 1
    LAUNCH_ONCE OPERANDS, FRAME, worker
.else
    OPEN_FRAME OPERANDS, FRAME, worker
    runall $m0, $m1, 0
    setzi $m0, apply
    sync 2
    runall $m0, $m1, 0
    sync 2
    br $m10
.endif

.worker
/* In: variance in $a0, mean - K in $a4. The slice's d in out become results. */
.macro NORMALISE
    { mov $m7, $m6 ; setzi $a1, LAYER_NORM_EPSILON & 0xfffff }
    { mov $m8, $m6 ; or $a1, $a1, LAYER_NORM_EPSILON & 0xfff00000 }
    { mov $m1, $m0 ; f32add $a0, $a0, $a1 }
    { mov $m10, $m0 ; f32oorx $a0, $a0 }
    { nop ; f32sub $a0, $azero, $a0 }
    { nop ; f32tof16 $a0, $a0 } // in both halves
    { ld64step $a0:1, $m2, $m7+=, PARTS ; uput $TAS, $a0 }
    { nop ; f32tof16 $a6, $a4 }
    { nop ; mov $a7, $a6 }
    { ld64step $a4:5, $m4, $m1+=, PARTS ; f16v4mix $azeros, $a0:1, $a6:7 }
    { ld64step $a0:1, $m2, $m7+=, PARTS ; f16v4gacc $a2:3 }
.if QUADS > 2
    { rpt QUADS - 2, 3 ; fnop }
    { ld64step $a4:5, $m5, $m10+=, PARTS ; f16v4mul $a2:3, $a2:3, $a4:5 }
    { ld64step $a4:5, $m4, $m1+=, PARTS ; f16v4add $a2:3, $a2:3, $a4:5 }
    { st64step $a2:3, $m2, $m8+=, PARTS ; f16v4mix $azeros, $a0:1, $a6:7 }
    { ld64step $a0:1, $m2, $m7+=, PARTS ; f16v4gacc $a2:3 }
.endif
    { ld64step $a4:5, $m5, $m10+=, PARTS ; f16v4mul $a2:3, $a2:3, $a4:5 }
    { ld64step $a4:5, $m4, $m1+=, PARTS ; f16v4add $a2:3, $a2:3, $a4:5 }
    { st64step $a2:3, $m2, $m8+=, PARTS ; f16v4mix $azeros, $a0:1, $a6:7 }
    { nop ; f16v4gacc $a2:3 }
    { ld64step $a4:5, $m5, $m10+=, PARTS ; f16v4mul $a2:3, $a2:3, $a4:5 }
    { nop ; f16v4add $a2:3, $a2:3, $a4:5 }
    st64step $a2:3, $m2, $m8+=, PARTS
.endm

.align 8
worker:
    FIND_SLICE
.align 8
row:
    SLICE_STATISTICS
.if PARTS > 1
    st32 $a0, $m11, $m10, SECOND / 4
.else
    NORMALISE
.endif
    NEXT_ROW row
done:
    exitz $mzero

.if PARTS > 1
.align 8
apply:
    .if ROUNDS > 1
    FIND_SLICE
    .elseif SHARE == 0
    brz $m9, done
    .endif
.align 8
job:
    COMBINE
    { nop ; f32tof16 $a5, $a4 } // K of the own slice
    { nop ; f16tof32 $a5, $a5 }
    { nop ; f32sub $a4, $a6, $a5 }
    NORMALISE
    NEXT_ROW job
    exitz $mzero
.endif
.size ipu_layer_norm, . - ipu_layer_norm
