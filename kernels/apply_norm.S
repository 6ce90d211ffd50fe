/* apply_norm.S - the second half of a layer norm whose rows are spread over tiles: out = (x - mean) /
 * sqrt(variance + epsilon) * scale + bias for this tile's slice of every row, F16.
 *
 * Moments: F32 [APPLY_NORM_PARTS][rows][2], mean and variance of every tile's slice of a row, slices of equal
 * width: mean = avg(means), variance = avg(variances) + avg((mean of slice - mean)^2). Then, with K = mean
 * rounded to a half and r = 1 / sqrt(variance + epsilon) as a half: d = K - x in F16, -r * (d + (mean - K)) by
 * the mix instruction in F32, rounded, scale and bias in F16: 5 bundles a quad (four halves). All registers
 * are taken, so K comes from the worker's scratch word when it is needed.
 *
 * LANES workers share a row (quads lane, lane + LANES, ...); worker w is lane w % LANES of rows w / LANES + k
 * * 6 / LANES and combines the row's moments for itself. */
.include "launch.inc"

.set LANES, APPLY_NORM_LANES
.set ROWS, APPLY_NORM_ROWS
.set PARTS, APPLY_NORM_PARTS
.set TEAMS, 6 / LANES // rows at a time
.set SHARE, ROWS / TEAMS
.set REST, ROWS % TEAMS
.set ROUNDS, SHARE + ((REST != 0) & 1)
.set ROW_BYTES, APPLY_NORM_COLUMNS * 2
.set QUADS, APPLY_NORM_COLUMNS / 4 / LANES // of a lane, >= 2; the first QUADS_REST lanes have one more
.set QUADS_REST, APPLY_NORM_COLUMNS / 4 % LANES

.section .text.ipu_apply_norm, "ax"
.globl ipu_apply_norm
.type ipu_apply_norm, @function
.supervisor
.align 8
ipu_apply_norm:
    LAUNCH_ONCE 5, 6, worker

.worker
.align 8
worker:
    get $m0, $WSR
    ld32 $m2, $mvertex_base, $mzero, 0 // out
    ld32 $m3, $mvertex_base, $mzero, 1 // x
    ld32 $m11, $mvertex_base, $mzero, 2 // moments
    ld32 $m4, $mvertex_base, $mzero, 3 // scale
    ld32 $m5, $mvertex_base, $mzero, 4 // bias
.if LANES == 1 // $m1: team, $m0: lane
    mov $m1, $m0
    setzi $m0, 0
.elseif LANES == 2
    shr $m1, $m0, 1
    and $m0, $m0, 1
.elseif LANES == 3
    cmpult $m1, $m0, 3
    sub $m1, 1, $m1
    mul $m6, $m1, 3
    sub $m0, $m0, $m6
.else
    setzi $m1, 0
.endif
.if REST
    cmpult $m9, $m1, REST // rows after the first
    .if SHARE
    add $m9, $m9, SHARE - 1
    .else
    brz $m9, done
    .endif
.else
    setzi $m9, SHARE - 1
.endif
.if QUADS_REST
    cmpult $m8, $m0, QUADS_REST
    add $m8, $m8, QUADS - 2
.else
    setzi $m8, QUADS - 2 // repeats of the loop
.endif
    shl $m0, $m0, 3
    mul $m6, $m1, ROW_BYTES
    add $m6, $m6, $m0 // of the lane's first quad
    shl $m1, $m1, 3
    add $m11, $m11, $m1
.align 8
row:
/* mean -> $a6, variance -> $a1 */
.if PARTS == 1
    { ld32 $a6, $m11, $mzero, 0 ; fnop }
    { ld32 $a1, $m11, $mzero, 1 ; fnop }
.else
    { mov $m7, $m11 ; setzi $a7, 8 }
    { setzi $m10, ROWS ; uput $FP_CLR, $a7 } // zero accumulators
    { nop ; zero $a0:1 }
    { rpt PARTS, 0 ; zero $a2:3 }
    { ld64step $a2:3, $mzero, $m7+=, $m10 ; f32v2add $a0:1, $a0:1, $a2:3 }
    { mov $m7, $m11 ; f32v2add $a0:1, $a0:1, $a2:3 }
    { nop ; setzi $a7, APPLY_NORM_ONE_PART & 0xfffff }
    { nop ; or $a7, $a7, APPLY_NORM_ONE_PART & 0xfff00000 }
    { nop ; f32mul $a6, $a0, $a7 }
    { rpt PARTS, 1 ; zero $a4:5 }
    { ld64step $a2:3, $mzero, $m7+=, $m10 ; f32mac $a4, $a4 }
    { nop ; f32sub $a4, $a6, $a2 }
    { nop ; f32mac $a4, $a4 }
    { nop ; f32v2gina $a2:3, $azeros, 0 }
    { nop ; f32add $a1, $a1, $a2 }
    { nop ; f32mul $a1, $a1, $a7 }
.endif
    { mov $m7, $m6 ; setzi $a0, APPLY_NORM_EPSILON & 0xfffff }
    { mov $m10, $m6 ; or $a0, $a0, APPLY_NORM_EPSILON & 0xfff00000 }
    { mov $m1, $m0 ; f32add $a0, $a0, $a1 }
    { nop ; f32oorx $a0, $a0 }
    { nop ; f32sub $a0, $azero, $a0 }
    { nop ; f32tof16 $a0, $a0 } // in both halves
    { nop ; uput $TAS, $a0 }
    { nop ; f32tof16 $a4, $a6 } // K
    { st32 $a4, $mworker_base, $mzero, 0 ; f16tof32 $a5, $a4 }
    { ld64step $a0:1, $m3, $m7+=, LANES ; f32sub $a6, $a6, $a5 }
    { nop ; f32tof16 $a6, $a6 }
    { nop ; mov $a7, $a6 }
    { ld64 $a4:5, $m4, $m1, 0 ; f16v4sub $a0:1, $a4:BL, $a0:1 }
    { nop ; f16v4mix $azeros, $a0:1, $a6:7 } // gives the accumulators' old contents
    { ld64step $a0:1, $m3, $m7+=, LANES ; f16v4gacc $a2:3 }

/* Between quads: the bias of this one, K, the scale of the next, the result. */
.macro QUAD
    { ld64step $a4:5, $m5, $m1+=, LANES ; f16v4mul $a2:3, $a2:3, $a4:5 }
    { ldb16 $a4, $mworker_base, $mzero, 0 ; f16v4add $a2:3, $a2:3, $a4:5 }
    { ld64 $a4:5, $m4, $m1, 0 ; f16v4sub $a0:1, $a4:BL, $a0:1 }
    { st64step $a2:3, $m2, $m10+=, LANES ; f16v4mix $azeros, $a0:1, $a6:7 }
.endm
    { rpt $m8, 4 ; fnop }
    QUAD
    { ld64step $a0:1, $m3, $m7+=, LANES ; f16v4gacc $a2:3 }
    QUAD
    { nop ; f16v4gacc $a2:3 }
    { ld64step $a4:5, $m5, $m1+=, LANES ; f16v4mul $a2:3, $a2:3, $a4:5 }
    { nop ; f16v4add $a2:3, $a2:3, $a4:5 }
    st64step $a2:3, $m2, $m10+=, LANES
.if ROUNDS > 1
    setzi $m1, TEAMS * ROW_BYTES
    add $m6, $m6, $m1
    add $m11, $m11, TEAMS * 8
    brnzdec $m9, row
.endif
done:
    exitz $mzero
.size ipu_apply_norm, . - ipu_apply_norm
