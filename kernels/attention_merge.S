/* attention_merge.S - gathers the attention results of key blocks, and divides in the end.
 *
 * A block gives values O_b (F16, Left order: panels of 16 columns, 32 bytes a row, MERGE_COLUMNS of
 * them used) and statistics (F32 [2][rows]: scaled maxima m_b, sums s_b). The state of a row is F32:
 * MERGE_COLUMNS values O, then m, then s, padded to STRIDE floats.
 *
 *   initial:  O = O_b, m = m_b, s = s_b
 *   else:     M = max(m, m_b), a = exp(m - M), b = exp(m_b - M); O = a O + b O_b, s = a s + b s_b, m = M
 *   final:    the result O / s goes out as F16, row-major; the state is not written
 *
 * Worker w has rows w, w + 6, ... The unit is a quad: four halves, one 64-bit word of values. */
.include "launch.inc"

.set ROWS, MERGE_ROWS
.set SHARE, ROWS / 6
.set REST, ROWS % 6
.set ROUNDS, SHARE + ((REST != 0) & 1)
.set QUADS, MERGE_COLUMNS / 4 // >= 2
.set JUMP, 4 * ROWS - 3       // words from a panel's last quad of a row to the next panel's first
.set STRIDE, (MERGE_COLUMNS + 2 + 15) / 16 * 16
.set BODIES, (QUADS - 2) / 4  // repeats of four quads, between the first and the last
.set TAIL, (QUADS - 2) % 4    // quads between these and the last


.section .text.ipu_attention_merge, "ax"
.globl ipu_attention_merge
.type ipu_attention_merge, @function
.supervisor
.align 8
ipu_attention_merge:
.if MERGE_FINAL && !MERGE_INITIAL
    LAUNCH_ONCE 4, 4, worker
.else
    LAUNCH_ONCE 3, 4, worker
.endif

/* How a row's quads go by: FIRST_QUAD, QUAD with the step of the value load behind the quad's own
 * (a quad loads the next quad's values), LAST_QUAD. $a0:1: the quad's values. */
.worker
.if MERGE_INITIAL && MERGE_FINAL // one multiplication, by 1 / s in two halves: 2 bundles a quad
.macro FIRST_QUAD
    { ld64step $a0:1, $m3, $m1+=, 1 ; f16v4mix $azeros, $a0:1, $a0:1 }
.endm
.macro QUAD step
    { ld64step $a0:1, $m3, $m1+=, \step ; f16v4mix $a2:3, $a0:1, $a0:1 } // gives the quad before
    { st64step $a2:3, $m2, $m8+=, 1 ; fnop }
.endm
.macro LAST_QUAD
    { nop ; f16v4mix $a2:3, $a0:1, $a0:1 }
    { st64step $a2:3, $m2, $m8+=, 1 ; f16v4gacc $a4:5 }
    { st64step $a4:5, $m2, $m8+=, 1 ; fnop }
.endm
.set BODY, 8

.elseif MERGE_INITIAL // widening: 3 bundles
.macro FIRST_QUAD
    { nop ; f16v2tof32 $a2:3, $a0 }
    { ld64step $a0:1, $m3, $m1+=, 1 ; f16v2tof32 $a4:5, $a1 }
    { st64step $a2:3, $m2, $m8+=, 1 ; fnop }
.endm
.macro QUAD step
    { st64step $a4:5, $m2, $m8+=, 1 ; f16v2tof32 $a2:3, $a0 }
    { ld64step $a0:1, $m3, $m1+=, \step ; f16v2tof32 $a4:5, $a1 }
    { st64step $a2:3, $m2, $m8+=, 1 ; fnop }
.endm
.macro LAST_QUAD
    { st64step $a4:5, $m2, $m8+=, 1 ; f16v2tof32 $a2:3, $a0 }
    { st64step $a2:3, $m2, $m8+=, 1 ; f16v2tof32 $a4:5, $a1 }
    { st64step $a4:5, $m2, $m8+=, 1 ; fnop }
.endm
.set BODY, 12

.elseif MERGE_FINAL == 0 // a O + b O_b by axpy, which gives the pair before: 6 bundles. $a6: b
.macro FIRST_QUAD
    { nop ; f16v2tof32 $a4:5, $a0 }
    { ld64step $a2:3, $m10, $m11+=, 1 ; f32v2mul $a4:5, $a6:B, $a4:5 }
    { nop ; f32v2axpy $azeros, $a2:3, $a4:5 }
    { nop ; f16v2tof32 $a4:5, $a1 }
    { ld64step $a2:3, $m10, $m11+=, 1 ; f32v2mul $a4:5, $a6:B, $a4:5 }
    { ld64step $a0:1, $m3, $m1+=, 1 ; f32v2axpy $a2:3, $a2:3, $a4:5 }
.endm
.macro QUAD step
    { st64step $a2:3, $m2, $m8+=, 1 ; f16v2tof32 $a4:5, $a0 }
    { ld64step $a2:3, $m10, $m11+=, 1 ; f32v2mul $a4:5, $a6:B, $a4:5 }
    { nop ; f32v2axpy $a2:3, $a2:3, $a4:5 }
    { st64step $a2:3, $m2, $m8+=, 1 ; f16v2tof32 $a4:5, $a1 }
    { ld64step $a2:3, $m10, $m11+=, 1 ; f32v2mul $a4:5, $a6:B, $a4:5 }
    { ld64step $a0:1, $m3, $m1+=, \step ; f32v2axpy $a2:3, $a2:3, $a4:5 }
.endm
.macro LAST_QUAD
    { st64step $a2:3, $m2, $m8+=, 1 ; f16v2tof32 $a4:5, $a0 }
    { ld64step $a2:3, $m10, $m11+=, 1 ; f32v2mul $a4:5, $a6:B, $a4:5 }
    { nop ; f32v2axpy $a2:3, $a2:3, $a4:5 }
    { st64step $a2:3, $m2, $m8+=, 1 ; f16v2tof32 $a4:5, $a1 }
    { ld64step $a2:3, $m10, $m11+=, 1 ; f32v2mul $a4:5, $a6:B, $a4:5 }
    { nop ; f32v2axpy $a2:3, $a2:3, $a4:5 }
    { st64step $a2:3, $m2, $m8+=, 1 ; f32v2gina $a4:5, $azeros, 0 }
    { st64step $a4:5, $m2, $m8+=, 1 ; fnop }
.endm
.set BODY, 24

.else // the same with a / s and b / s, narrowed: 8 bundles
.macro FIRST_QUAD
    { nop ; f16v2tof32 $a4:5, $a0 }
    { ld64step $a2:3, $m10, $m11+=, 1 ; f32v2mul $a4:5, $a6:B, $a4:5 }
    { nop ; f32v2axpy $azeros, $a2:3, $a4:5 }
    { nop ; f16v2tof32 $a4:5, $a1 }
    { ld64step $a2:3, $m10, $m11+=, 1 ; f32v2mul $a4:5, $a6:B, $a4:5 }
    { ld64step $a0:1, $m3, $m1+=, 1 ; f32v2axpy $a2:3, $a2:3, $a4:5 }
    { nop ; f32v2tof16 $a7, $a2:3 }
.endm
.macro QUAD_PAIRS
    { st32step $a7, $m2, $m8+=, 1 ; f16v2tof32 $a4:5, $a0 }
    { ld64step $a2:3, $m10, $m11+=, 1 ; f32v2mul $a4:5, $a6:B, $a4:5 }
    { nop ; f32v2axpy $a2:3, $a2:3, $a4:5 }
    { nop ; f32v2tof16 $a7, $a2:3 }
    { st32step $a7, $m2, $m8+=, 1 ; f16v2tof32 $a4:5, $a1 }
    { ld64step $a2:3, $m10, $m11+=, 1 ; f32v2mul $a4:5, $a6:B, $a4:5 }
.endm
.macro QUAD step
    QUAD_PAIRS
    { ld64step $a0:1, $m3, $m1+=, \step ; f32v2axpy $a2:3, $a2:3, $a4:5 }
    { nop ; f32v2tof16 $a7, $a2:3 }
.endm
.macro LAST_QUAD
    QUAD_PAIRS
    { nop ; f32v2axpy $a2:3, $a2:3, $a4:5 }
    { nop ; f32v2tof16 $a7, $a2:3 }
    { st32step $a7, $m2, $m8+=, 1 ; f32v2gina $a2:3, $azeros, 0 }
    { nop ; f32v2tof16 $a7, $a2:3 }
    { st32step $a7, $m2, $m8+=, 1 ; fnop }
.endm
.set BODY, 32
.endif

.macro QUADS_OF_ROW
    FIRST_QUAD
.if BODIES
    { rpt BODIES, BODY - 1 ; fnop }
    QUAD 1
    QUAD $m5
    QUAD 1
    QUAD 1
.endif
.if TAIL > 0
    QUAD 1
.endif
.if TAIL > 1
    QUAD $m5
.endif
.if TAIL > 2
    QUAD 1
.endif
    LAST_QUAD
.endm

.if MERGE_INITIAL && MERGE_FINAL
.align 8
worker:
    { get $m0, $WSR ; fnop }
    { ld32 $m4, $mvertex_base, $mzero, 2 ; fnop } // statistics of the block
    .if REST
    { cmpult $m9, $m0, REST ; fnop }
        .if SHARE
    { add $m9, $m9, SHARE - 1 ; fnop } // rows after the first
        .else
    { brz $m9, done ; fnop }
        .endif
    .elseif SHARE > 1
    { setzi $m9, SHARE - 1 ; fnop }
    .endif
    { shl $m6, $m0, 2 ; fnop } // offsets: $m6 statistics, $m8 result, $m0 values
    { ld32 $a0, $m4, $m6, ROWS ; fnop }
    { ld32 $m2, $mvertex_base, $mzero, 0 ; f32oox $a0, $a0 } // result
    { ld32 $m3, $mvertex_base, $mzero, 1 ; f32tof16 $a2, $a0 } // values of the block
    { setzi $m5, JUMP ; f16tof32 $a3, $a2 }
    { mul $m8, $m0, MERGE_COLUMNS * 2 ; f32sub $a0, $a0, $a3 }
    { shl $m0, $m0, 5 ; f32tof16 $a3, $a0 }
    { mov $m1, $m0 ; sort4x16lo $a2, $a2, $a3 } // 1 / s is the sum of two halves
row:
    { ld64step $a0:1, $m3, $m1+=, 1 ; uput $TAS, $a2 }
    QUADS_OF_ROW
    .if ROUNDS > 1
    { brz $m9, done ; fnop }
    { add $m6, $m6, 6 * 4 ; fnop }
    { ld32 $a0, $m4, $m6, ROWS ; fnop }
    { add $m0, $m0, 6 * 32 ; f32oox $a0, $a0 }
    { add $m8, $m8, 5 * MERGE_COLUMNS * 2 ; f32tof16 $a2, $a0 }
    { mov $m1, $m0 ; f16tof32 $a3, $a2 }
    { nop ; f32sub $a0, $a0, $a3 }
    { nop ; f32tof16 $a3, $a0 }
    { add $m9, $m9, -1 ; sort4x16lo $a2, $a2, $a3 }
    { bri row ; fnop }
    .endif

.else
.align 8
worker: // instructions outside of bundles in even numbers before the repeat, whose body is aligned
    get $m0, $WSR
    ld32 $m2, $mvertex_base, $mzero, 0 // result: values or state
.if MERGE_INITIAL
    ld32 $m3, $mvertex_base, $mzero, 1 // values of the block
    ld32 $m4, $mvertex_base, $mzero, 2 // its statistics
.elseif MERGE_FINAL == 0
    mov $m10, $m2
    ld32 $m3, $mvertex_base, $mzero, 1
    ld32 $m4, $mvertex_base, $mzero, 2
.else
    ld32 $m10, $mvertex_base, $mzero, 1 // old state
    ld32 $m3, $mvertex_base, $mzero, 2
    ld32 $m4, $mvertex_base, $mzero, 3
.endif
.if REST
    cmpult $m9, $m0, REST
    .if SHARE
    { add $m9, $m9, SHARE - 1 ; fnop } // rows after the first
    .else
    { brz $m9, done ; fnop }
    .endif
.else
    setzi $m9, SHARE - 1
.endif
    setzi $m5, JUMP
    shl $m6, $m0, 2 // offsets: $m6 statistics, $m8 result, $m11 old state, $m0 values
.if MERGE_FINAL
    mul $m8, $m0, MERGE_COLUMNS * 2
.else
    mul $m8, $m0, STRIDE * 4
.endif
.if !MERGE_INITIAL
    { mul $m11, $m0, STRIDE * 4 ; fnop }
.else
    nop
.endif
    shl $m0, $m0, 5
row:
.if MERGE_INITIAL
    { mov $m1, $m0 ; fnop }
    { ld32 $a0, $m4, $m6, 0 ; fnop }
    { ld32 $a1, $m4, $m6, ROWS ; fnop }
    { st32 $a0, $m2, $m8, MERGE_COLUMNS ; fnop }
    { st32 $a1, $m2, $m8, MERGE_COLUMNS + 1 ; fnop }
    { ld64step $a0:1, $m3, $m1+=, 1 ; fnop }
.else
    { ld32 $a0, $m10, $m11, MERGE_COLUMNS ; fnop }
    { ld32 $a1, $m4, $m6, 0 ; fnop }
    { ld32 $a4, $m10, $m11, MERGE_COLUMNS + 1 ; f32max $a2, $a0, $a1 }
    { ld32 $a5, $m4, $m6, ROWS ; f32sub $a0, $a0, $a2 }
    { mov $m1, $m0 ; f32sub $a1, $a1, $a2 }
    { nop ; f32exp $a3, $a0 } // a
    { nop ; f32exp $a6, $a1 } // b
    { nop ; f32mul $a4, $a4, $a3 }
    { nop ; f32mul $a5, $a5, $a6 }
    { nop ; f32add $a4, $a4, $a5 }
    .if MERGE_FINAL
    { nop ; f32oox $a4, $a4 }
    { nop ; f32mul $a3, $a3, $a4 }
    { nop ; f32mul $a6, $a6, $a4 }
    .else
    { st32 $a2, $m2, $m8, MERGE_COLUMNS ; fnop }
    { st32 $a4, $m2, $m8, MERGE_COLUMNS + 1 ; fnop }
    .endif
    { ld64step $a0:1, $m3, $m1+=, 1 ; uput $TAS, $a3 }
.endif
    QUADS_OF_ROW
.if ROUNDS > 1
    add $m0, $m0, 6 * 32
    add $m6, $m6, 6 * 4
    .if MERGE_FINAL
    add $m8, $m8, 5 * MERGE_COLUMNS * 2
    .else
    add $m8, $m8, 6 * STRIDE * 4 - MERGE_COLUMNS * 4
    .endif
    .if !MERGE_INITIAL
    add $m11, $m11, 6 * STRIDE * 4 - MERGE_COLUMNS * 4
    .endif
    brnzdec $m9, row
.endif
.endif
done:
    exitz $mzero
.size ipu_attention_merge, . - ipu_attention_merge
