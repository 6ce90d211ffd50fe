/* layer_norm.S - out = (x - mean) / sqrt(variance + epsilon) * scale + bias, row by row, F16 with F32
 * statistics.
 *
 * Every row is cut into LAYER_NORM_PARTS slices of every PARTS-th quad (four halves, one 64-bit word);
 * a worker takes whole slices. In a slice: sum of x in F32 -> mean m, K = m rounded to a half; then
 * d = K - x (a half, exact where x is near K) goes to `out` and its squares are summed in F32. The
 * variance about the true mean follows without cancellation:
 *   slice: v = sum(d^2) / n - (m - K)^2       row: mean = avg(m), variance = avg(v) + avg((m - mean)^2)
 * so rounding K costs nothing. The last pass makes -r * (d + (mean - K)), r = 1 / sqrt(variance +
 * epsilon) as a half, by the mix instruction in F32, rounds, and applies scale and bias in F16.
 *
 *   PARTS = 1: one launch, worker w has rows w, w + 6, ...
 *   PARTS = 2, 3, 6: two launches; worker w has slice w % PARTS of rows w / PARTS + k * 6 / PARTS. The
 *   first leaves m and v of every slice in the frame, in the second every worker combines its row's. */
.include "launch.inc"

.set PARTS, LAYER_NORM_PARTS
.set QUADS, LAYER_NORM_COLUMNS / 4 / PARTS // of a slice, >= 2
.set TEAMS, 6 / PARTS                      // rows at a time
.set SHARE, LAYER_NORM_ROWS / TEAMS
.set REST, LAYER_NORM_ROWS % TEAMS
.set ROUNDS, SHARE + ((REST != 0) & 1)
.set ROW_BYTES, LAYER_NORM_COLUMNS * 2
.set SECOND, (PARTS + 1) / 2 * 8 // in a row's statistics: means, then variances, as pairs
.set STATISTICS, 2 * SECOND
.if PARTS == 1
    .set FRAME, 4
.else
    .set FRAME, 4 + LAYER_NORM_ROWS * STATISTICS / 4
.endif
.set ONES, 0x3c003c00
.if PARTS == 6
    .set ONE_PART, 0x3e2aaaab // 1 / 6
.elseif PARTS == 3
    .set ONE_PART, 0x3eaaaaab
.else
    .set ONE_PART, 0x3f000000
.endif

.section .text.ipu_layer_norm, "ax"
.globl ipu_layer_norm
.supervisor
.align 8
ipu_layer_norm:
.if PARTS == 1
    LAUNCH_ONCE 4, FRAME, worker
.else
    OPEN_FRAME 4, FRAME, worker
    runall $m0, $m1, 0
    setzi $m0, apply
    sync 2
    runall $m0, $m1, 0
    sync 2
    br $m10
.endif

.worker

/* $m2.. operands, $m0: offset of the slice in a row, $m6: in its first row, $m9: rows after the first,
 * $m11: the row's statistics. Workers without rows leave. */
.macro FIND_SLICE
    get $m0, $WSR
    ld32 $m2, $mvertex_base, $mzero, 0
    ld32 $m3, $mvertex_base, $mzero, 1
    ld32 $m4, $mvertex_base, $mzero, 2
    ld32 $m5, $mvertex_base, $mzero, 3
.if PARTS == 1
    mov $m1, $m0
    setzi $m0, 0
.elseif PARTS == 2
    shr $m1, $m0, 1
    and $m0, $m0, 1
.elseif PARTS == 3
    cmpult $m1, $m0, 3
    sub $m1, 1, $m1
    mul $m6, $m1, 3
    sub $m0, $m0, $m6
.else
    setzi $m1, 0
.endif
.if REST
    cmpult $m9, $m1, REST
    .if SHARE
    add $m9, $m9, SHARE - 1
    .else
    brz $m9, done
    .endif
.else
    setzi $m9, SHARE - 1
.endif
.if PARTS > 1
    shl $m0, $m0, 3
    mul $m11, $m1, STATISTICS
    add $m11, $m11, $mvertex_base
    add $m11, $m11, 16
.endif
    mul $m6, $m1, ROW_BYTES
.if PARTS > 1
    add $m6, $m6, $m0
.endif
.endm

/* -> $a4: mean - K (F32), $a5: K, $a0: variance of the slice (F32); d in out. Leaves 1 / n in $a7. */
.macro SLICE_STATISTICS
    { mov $m7, $m6 ; setzi $a7, 8 }
    { mov $m8, $m6 ; uput $FP_CLR, $a7 } // zero accumulators
.if PARTS == 1
    { nop ; setzi $a2, ONES & 0xfffff }
.else
    { shr $m10, $m0, 1 ; setzi $a2, ONES & 0xfffff }
.endif
    { nop ; or $a2, $a2, ONES & 0xfff00000 }
    { nop ; mov $a3, $a2 }
    { rpt QUADS, 0 ; zero $a0:1 }
    { ld64step $a0:1, $m3, $m7+=, PARTS ; f16v4cmac $a0:1, $a2:3 }
    { mov $m7, $m6 ; f16v4cmac $a0:1, $a2:3 }
    { ld64step $a0:1, $m3, $m7+=, PARTS ; setzi $a7, LAYER_NORM_RECIPROCAL & 0xfffff }
    { nop ; or $a7, $a7, LAYER_NORM_RECIPROCAL & 0xfff00000 }
    { nop ; f32v2gina $a4:5, $azeros, 0 }
    { nop ; f32add $a4, $a4, $a5 }
    { nop ; f32mul $a4, $a4, $a7 }
    { nop ; f32tof16 $a5, $a4 }
.if PARTS == 1
    { nop ; f16tof32 $a6, $a5 }
.else
    { st32 $a4, $m11, $m10, 0 ; f16tof32 $a6, $a5 }
.endif
    { nop ; f32sub $a4, $a4, $a6 }
    { rpt QUADS - 1, 1 ; f16v4sub $a2:3, $a5:BL, $a0:1 }
    { ld64step $a0:1, $m3, $m7+=, PARTS ; f16v4cmac $a2:3, $a2:3 }
    { st64step $a2:3, $m2, $m8+=, PARTS ; f16v4sub $a2:3, $a5:BL, $a0:1 }
    { st64step $a2:3, $m2, $m8+=, PARTS ; f16v4cmac $a2:3, $a2:3 }
    { nop ; f32v2gina $a0:1, $azeros, 0 }
    { nop ; f32add $a0, $a0, $a1 }
    { nop ; f32mul $a0, $a0, $a7 }
    { nop ; f32mul $a1, $a4, $a4 }
    { nop ; f32sub $a0, $a0, $a1 }
    { nop ; f32max $a0, $a0, $azero } // a constant row may round to below zero
.endm

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

/* A row's mean and variance from its slices, alike in all workers that have a slice of it. In: own
 * slice in $m0. -> $a4: mean - K (F32), $a0: variance. */
.macro COMBINE
    { shr $m10, $m0, 1 ; setzi $a7, 8 }
    { ld64 $a0:1, $m11, $mzero, 0 ; uput $FP_CLR, $a7 } // zero accumulators
.if PARTS == 6
    { ld64 $a2:3, $m11, $mzero, 1 ; fnop }
    { ld64 $a4:5, $m11, $mzero, 2 ; f32v2add $a6:7, $a0:1, $a2:3 }
    { nop ; f32v2add $a6:7, $a6:7, $a4:5 }
    { nop ; f32add $a6, $a6, $a7 }
.elseif PARTS == 3
    { ld32 $a2, $m11, $mzero, 2 ; f32add $a6, $a0, $a1 }
    { nop ; f32add $a6, $a6, $a2 }
.else
    { nop ; f32add $a6, $a0, $a1 }
.endif
    { nop ; setzi $a7, ONE_PART & 0xfffff }
    { nop ; or $a7, $a7, ONE_PART & 0xfff00000 }
    { nop ; f32mul $a6, $a6, $a7 } // mean
    { nop ; f32v2sub $a0:1, $a6:B, $a0:1 }
    { nop ; f32v2mac $a0:1, $a0:1 }
.if PARTS == 6
    { ld64 $a0:1, $m11, $mzero, 3 ; f32v2sub $a2:3, $a6:B, $a2:3 }
    { nop ; f32v2mac $a2:3, $a2:3 }
    { ld64 $a2:3, $m11, $mzero, 4 ; f32v2sub $a4:5, $a6:B, $a4:5 }
    { nop ; f32v2mac $a4:5, $a4:5 }
    { ld64 $a4:5, $m11, $mzero, 5 ; f32v2add $a0:1, $a0:1, $a2:3 }
    { nop ; f32v2add $a0:1, $a0:1, $a4:5 }
.elseif PARTS == 3
    { ld64 $a0:1, $m11, $mzero, 2 ; f32sub $a2, $a6, $a2 }
    { nop ; f32mac $a2, $a2 }
    { ld32 $a2, $m11, $mzero, 6 ; f32add $a0, $a0, $a1 }
    { nop ; f32add $a0, $a0, $a2 }
.else
    { ld64 $a0:1, $m11, $mzero, 1 ; fnop }
.endif
    { ld32 $a4, $m11, $m10, 0 ; f32v2gina $a2:3, $azeros, 0 }
.if PARTS == 3
    { nop ; f32add $a2, $a2, $a3 }
    { nop ; f32add $a0, $a0, $a2 }
.else
    { nop ; f32v2add $a0:1, $a0:1, $a2:3 }
    { nop ; f32add $a0, $a0, $a1 }
.endif
    { nop ; f32mul $a0, $a0, $a7 }
    { nop ; f32tof16 $a5, $a4 }
    { nop ; f16tof32 $a5, $a5 }
    { nop ; f32sub $a4, $a6, $a5 }
.endm

.macro NEXT_ROW label
.if ROUNDS > 1
    setzi $m1, TEAMS * ROW_BYTES
    add $m6, $m6, $m1
    .if PARTS > 1
    add $m11, $m11, TEAMS * STATISTICS
    .endif
    brnzdec $m9, \label
.endif
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
    NORMALISE
    NEXT_ROW job
    exitz $mzero
.endif
