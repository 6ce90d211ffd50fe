/* reduce_sum.S - out = seed + partial 0 + partial 1 + ...; with REDUCE_GELU its GELU (gelu.inc). The
 * partials lie one after another, REDUCE_ELEMENTS halves each.
 *
 * Members in interleaved memory are summed in F32 (sum_octets.inc: the unit is eight halves), members
 * anywhere in F16 (sum_quads.inc: four halves). This file deals the units to the workers, in turn (w,
 * w + 6, ...) or, for a GELU of octets, whose quads must lie evenly, a stretch to each; and runs the
 * GELU over the worker's own sums where they lie.
 *
 * The loops find in $m0 the offset of the worker's first unit, in $m1 (when REST) whether it has one
 * more than SHARE units, and $m2, $m3, $m4 at out, seed and stack. */
.set GELU_UNIT_QUADS, 1 + REDUCE_INTERLEAVED
.set UNITS, REDUCE_ELEMENTS / 4 / GELU_UNIT_QUADS
.set UNIT_BYTES, 8 * GELU_UNIT_QUADS
.set SHARE, UNITS / 6 // every worker's; the first REST have one more
.set REST, UNITS % 6
.set STACK, REDUCE_PARTIALS - 1
.set STRETCHES, (REDUCE_INTERLEAVED && REDUCE_GELU) & 1
.set UNIT_STEP, 6 - 5 * STRETCHES // units from a worker's unit to its next
.set PULLED, (REDUCE_INTERLEAVED && !REDUCE_WALK) & 1 // bases lie before their operands

.set GELU_STEP, UNIT_STEP
.if SHARE == 0
    .set GELU_LEAST, GELU_UNIT_QUADS
.else
    .set GELU_LEAST, GELU_UNIT_QUADS * SHARE
.endif
.set GELU_MIXED, (SHARE && REST) & 1
.include "launch.inc"
.include "gelu.inc"

.section .text.ipu_reduce_sum, "ax"
.globl ipu_reduce_sum
.supervisor
.align 8
ipu_reduce_sum:
.if PULLED
    add $m4, $m4, -UNIT_STEP * UNIT_BYTES
    add $m2, $m2, -3 * UNIT_STEP * UNIT_BYTES
.endif
.if REDUCE_GELU
    LAUNCH_GELU 3, worker
.else
    LAUNCH_ONCE 3, 4, worker
.endif

.worker
.align 8
worker:
    { get $m1, $WSR ; setzi $a0, 0x3800 } // 1/2, twice
    { ld32 $m3, $mvertex_base, $mzero, 1 ; or $a0, $a0, 0x38000000 }
    { ld32 $m4, $mvertex_base, $mzero, 2 ; uput $TAS, $a0 }
    { ld32 $m2, $mvertex_base, $mzero, 0 ; fnop }
.if STRETCHES && SHARE
    { mul $m0, $m1, SHARE * UNIT_BYTES ; fnop }
    .if REST
    { min $m5, $m1, REST ; fnop }
    { shl $m5, $m5, 4 ; fnop }
    { add $m0, $m0, $m5 ; fnop }
    .endif
.else
    { shl $m0, $m1, 3 + REDUCE_INTERLEAVED ; fnop }
.endif
.if REST
    { cmpult $m1, $m1, REST ; fnop }
    .if SHARE == 0
    { brz $m1, done ; fnop }
    .endif
.endif
.if REDUCE_GELU
    { mov $m11, $m0 ; fnop }
.endif

.if REDUCE_INTERLEAVED
    .include "sum_octets.inc"
.else
    .include "sum_quads.inc"
.endif

.if REDUCE_GELU
gelu:
    { get $m1, $WSR ; GELU_SET_1 }
    { cmpult $m1, $m1, REST ; GELU_SET_2 }
    { mov $m3, $m2 ; GELU_SET_3 }
    { add $m0, $m11, 3 * UNIT_STEP * UNIT_BYTES * PULLED ; fnop }
    .if GELU_MIXED && REDUCE_INTERLEAVED
    { add $m1, $m1, $m1 ; fnop }
    .endif
    GELU_QUADS
.endif
done:
    exitz $mzero
