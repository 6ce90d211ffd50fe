/* layer_norm.S - out = (x - mean) / sqrt(variance + epsilon) * scale + bias, row by row, F16 with F32
 * statistics. With LAYER_NORM_ADD x is a + b, rounded to half, and is stored too.
 *
 * norm.inc makes the statistics and leaves d = x - K in out, K a half next to the slice's mean. The last
 * pass makes r * (d - (mean - K)), r = 1 / sqrt(variance + epsilon) as a half, by the mix instruction in F32,
 * rounds, and applies scale and bias in F16: 3 bundles a quad, for which d and scale are loaded together (they
 * lie in different memory elements). One launch when a worker has whole rows (PARTS = 1), else two: in the
 * second every worker combines its row's slices and finishes its own. */
.include "launch.inc"

.set PARTS, LAYER_NORM_PARTS
.set ROWS, LAYER_NORM_ROWS
.set COLUMNS, LAYER_NORM_COLUMNS
.set ADD, LAYER_NORM_ADD
.set STORE_D, 1
.if ADD
    .set OPERANDS, 6
.else
    .set OPERANDS, 4
.endif
.set RECIPROCAL, LAYER_NORM_RECIPROCAL
.set EPSILON, LAYER_NORM_EPSILON

.macro LOAD_OPERANDS
    { get $m0, $WSR ; setzi $a6, 8 }
    { ld32 $m2, $mvertex_base, $mzero, 0 ; uput $FP_CLR, $a6 } // out
    { ld32 $m3, $mvertex_base, $mzero, 1 ; setzi $a2, ONES & 0xfffff } // x, or the sum
    { ld32 $m4, $mvertex_base, $mzero, OPERANDS - 2 ; or $a2, $a2, ONES & 0xfff00000 } // scale
    { ld32 $m5, $mvertex_base, $mzero, OPERANDS - 1 ; mov $a3, $a2 } // bias
.endm
.include "norm.inc"

.section .text.ipu_layer_norm, "ax"
.globl ipu_layer_norm
.type ipu_layer_norm, @function
.supervisor
.align 8
ipu_layer_norm:
    NORM_LAUNCHES worker, apply

.worker
/* In: -variance in $a0, epsilon in $a1, -(mean - K) in $a4. The slice's d in out become results. $m6 moves
 * on to the row's end. */
.macro NORMALISE
    { add $m8, $m2, $m6 ; f32sub $a0, $a1, $a0 }
    { add $m9, $m4, $m0 ; f32oorx $a0, $a0 }
    { mov $m10, $m0 ; f32tof16 $a0, $a0 } // in both halves
.if PARTS == 1
    { nop ; f32tof16 $a6, $a4 }
.else
    { setzi $m7, PARTS | PARTS << 10 ; f32tof16 $a6, $a4 }
.endif
    { nop ; mov $a7, $a6 }
    { ld2x64pace $a0:1, $a4:5, $m8:9+=, $m7, STEP ; uput $TAS, $a0 }
    { ld64step $a0:1, $mzero, $m8+=, PARTS ; f16v4mix $azeros, $a0:1, $a6:7 }
    { nop ; f16v4mix $a2:3, $a0:1, $a6:7 } // gives the quad before
.if QUADS > 2
    { rpt QUADS - 2, 2 ; fnop }
    { ld64step $a4:5, $m5, $m10+=, PARTS ; f16v4mul $a2:3, $a2:3, $a4:5 }
    { ld2x64pace $a0:1, $a4:5, $m8:9+=, $m7, STEP ; f16v4add $a2:3, $a2:3, $a4:5 }
    { st64step $a2:3, $m2, $m6+=, PARTS ; f16v4mix $a2:3, $a0:1, $a6:7 }
.endif
    { ld64step $a4:5, $m5, $m10+=, PARTS ; f16v4mul $a2:3, $a2:3, $a4:5 }
    { ld64step $a4:5, $mzero, $m9+=, PARTS ; f16v4add $a2:3, $a2:3, $a4:5 }
    { st64step $a2:3, $m2, $m6+=, PARTS ; f16v4gacc $a2:3 }
    { ld64step $a4:5, $m5, $m10+=, PARTS ; f16v4mul $a2:3, $a2:3, $a4:5 }
    { nop ; f16v4add $a2:3, $a2:3, $a4:5 }
    { st64step $a2:3, $m2, $m6+=, PARTS ; fnop }
.endm

.align 8
worker:
    FIND_SLICE
row:
    SLICE_STATISTICS
.if PARTS == 1
    NORMALISE
    NEXT_ROW row, ROW_BYTES, 1
.else
    { st32 $a0, $m11, $m9, (FRAME_STATISTICS + SECOND) / 4 ; fnop }
    NEXT_ROW row, 0, 0
.endif
done:
    exitz $mzero

.if PARTS > 1
/* Registers are those of the first launch unless that went on to other rows. */
.align 8
apply:
    .if ROUNDS > 1
    FIND_SLICE
    .elseif SHARE == 0
    { brz $m1, done ; fnop }
    .endif
job:
    .if ROUNDS > 1
    { shr $m9, $m0, 1 ; fnop }
    .endif
    COMBINE
    { nop ; f32tof16 $a5, $a4 } // -K of the own slice
    { nop ; f16tof32 $a5, $a5 }
    { ld32 $a1, $mvertex_base, $mzero, FRAME_EPSILON ; f32sub $a4, $a6, $a5 }
    NORMALISE
    NEXT_ROW job, ROW_BYTES, 1
    exitz $mzero
.endif
.size ipu_layer_norm, . - ipu_layer_norm
