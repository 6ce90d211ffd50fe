/* moments.S - mean and variance of rows, F32 [rows][2], for a layer norm whose rows are spread over tiles.
 * With MOMENTS_ADD x is a + b, rounded to half, and is stored too.
 *
 * norm.inc has the method. One launch when a worker has whole rows (PARTS = 1), else two: in the second
 * worker w combines the slices of rows w, w + 6, ... */
.include "launch.inc"

.set PARTS, MOMENTS_PARTS
.set ROWS, MOMENTS_ROWS
.set COLUMNS, MOMENTS_COLUMNS
.set ADD, MOMENTS_ADD
.set STORE_D, 0
.if ADD
    .set OPERANDS, 4
.else
    .set OPERANDS, 2
.endif
.set RECIPROCAL, MOMENTS_RECIPROCAL
.set EPSILON, 0

.macro LOAD_OPERANDS
    { get $m0, $WSR ; setzi $a6, 8 }
    { ld32 $m2, $mvertex_base, $mzero, 0 ; uput $FP_CLR, $a6 } // moments
    { ld32 $m3, $mvertex_base, $mzero, 1 ; setzi $a2, ONES & 0xfffff } // x, or the sum
    { shl $m4, $m0, 3 ; or $a2, $a2, ONES & 0xfff00000 } // of the row's moments, when PARTS = 1
    { nop ; mov $a3, $a2 }
.endm
.include "norm.inc"

.section .text.ipu_moments, "ax"
.globl ipu_moments
.type ipu_moments, @function
.supervisor
.align 8
ipu_moments:
    NORM_LAUNCHES worker, combine

.worker
.align 8
worker:
    FIND_SLICE
row:
    SLICE_STATISTICS
.if PARTS > 1
    { st32 $a0, $m11, $m9, (FRAME_STATISTICS + SECOND) / 4 ; fnop }
.else
    { nop ; f32add $a6, $a4, $a6 } // -mean again, exactly
    { nop ; mov $a7, $a0 }
    { nop ; f32v2sub $a6:7, $azeros, $a6:7 }
    { st64 $a6:7, $m2, $m4, 0 ; fnop }
    .if ROUNDS > 1
    { add $m4, $m4, 6 * 8 ; fnop }
    .endif
.endif
    NEXT_ROW row, 0, 0
done:
    exitz $mzero

.if PARTS > 1
.align 8
combine: // accumulators are zero after the first launch, and again after each row
    get $m1, $WSR
    ld32 $m2, $mvertex_base, $mzero, 0
    shl $m4, $m1, 3
    mul $m11, $m1, STATISTICS
    add $m11, $m11, $mvertex_base
    setzi $m9, 0
    .if ROWS < 6
    cmpult $m1, $m1, ROWS
    brz $m1, done
    .elseif ROWS % 6
    cmpult $m1, $m1, ROWS % 6
    add $m1, $m1, ROWS / 6 - 1
    .elseif ROWS > 6
    setzi $m1, ROWS / 6 - 1
    .endif
next:
    COMBINE
    mov $a7, $a0
    f32v2sub $a6:7, $azeros, $a6:7
    st64 $a6:7, $m2, $m4, 0
    .if ROWS > 6
    add $m4, $m4, 6 * 8
    add $m11, $m11, 6 * STATISTICS
    brnzdec $m1, next
    .endif
    exitz $mzero
.endif
.size ipu_moments, . - ipu_moments
