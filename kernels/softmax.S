/* softmax.S - exponentials of attention scores, not divided by their sum, and the statistics for it.
 *
 * Scores and exponentials: F16, Left order (panels of 16 keys, 32 bytes a row). Per row: m = largest
 * score; e = exp(half(scale * (s - m))), F16; statistics F32 [2][rows]: scale * m and the sum of e
 * (F32 sum of the rounded e). Columns from SOFTMAX_KEYS on are read as anything and written as zero.
 *
 * Worker w has rows w, w + 6, ...: one pass for the maximum, one for the exponentials. The unit is a
 * quad: four halves, one 64-bit word; a row's quads lie together in fours, then comes the other rows'
 * part of the panel. */
.include "launch.inc"

.set ROWS, SOFTMAX_ROWS
.set SHARE, ROWS / 6
.set REST, ROWS % 6
.set QUADS, (SOFTMAX_KEYS + 3) / 4 // that hold keys
.set LANES, SOFTMAX_KEYS % 4       // keys in the last one; 0: four
.set JUMP, 4 * ROWS - 3            // words from a panel's last quad of a row to the next panel's first
.set FULL, (QUADS - 1) / 4         // panels before the one that ends the keys
.set LAST, QUADS - 4 * FULL        // quads with keys in that one, 1..4
.set EMPTY, SOFTMAX_PADDED_KEYS / 16 - FULL - 1
.set LOWEST, 0xfbfffbff // -65504 twice
.set ONES, 0x3c003c00

.section .text.ipu_softmax, "ax"
.globl ipu_softmax
.type ipu_softmax, @function
.supervisor
.align 8
ipu_softmax:
    LAUNCH_ONCE 3, 4, worker

.worker
/* Takes the lanes without keys out of the pair \low, \high: \filler comes in. */
.macro CUT_LANES low, high, filler
.if LANES == 1
    { nop ; sort4x16lo \low, \low, \filler }
    { nop ; mov \high, \filler }
.elseif LANES == 2
    { nop ; mov \high, \filler }
.elseif LANES == 3
    { nop ; sort4x16lo \high, \high, \filler }
.endif
.endm

.align 8
worker:
    { get $m0, $WSR ; setzi $a7, 8 }
    { ld32 $m2, $mvertex_base, $mzero, 0 ; uput $FP_CLR, $a7 } // zero accumulators
    { ld32 $m3, $mvertex_base, $mzero, 1 ; fnop }
    { ld32 $m4, $mvertex_base, $mzero, 2 ; fnop }
.if REST
    cmpult $m9, $m0, REST
    .if SHARE
    { add $m9, $m9, SHARE - 1 ; fnop } // rows after the first
    .else
    { brz $m9, done ; fnop }
    .endif
.elseif SHARE > 1
    setzi $m9, SHARE - 1
.endif
    shl $m6, $m0, 2
.if QUADS > 4 || EMPTY
    setzi $m5, JUMP
.endif
    shl $m0, $m0, 5
.if ((REST || SHARE > 1) && !(QUADS > 4 || EMPTY)) || (!(REST || SHARE > 1) && (QUADS > 4 || EMPTY))
    nop // repeat bodies are aligned
.endif

row:
.if QUADS == 1
    { mov $m8, $m0 ; setzi $a6, LOWEST & 0xfffff }
    { ld64 $a0:1, $m4, $m0, 0 ; or $a6, $a6, LOWEST & 0xfff00000 }
    CUT_LANES $a0, $a1, $a6
    { nop ; f16v4maxc $a4, $a0:1 }
.else
    { mov $m7, $m0 ; setzi $a6, LOWEST & 0xfffff }
    { mov $m8, $m0 ; or $a6, $a6, LOWEST & 0xfff00000 }
    { nop ; mov $a4, $a6 }
    { nop ; mov $a5, $a6 }
    .if FULL
    { rpt FULL, 3 ; mov $a0:1, $a4:5 }
    { ld64step $a0:1, $m4, $m7+=, 1 ; f16v4max $a4:5, $a4:5, $a0:1 }
    { ld64step $a0:1, $m4, $m7+=, 1 ; f16v4max $a4:5, $a4:5, $a0:1 }
    { ld64step $a0:1, $m4, $m7+=, 1 ; f16v4max $a4:5, $a4:5, $a0:1 }
    { ld64step $a0:1, $m4, $m7+=, $m5 ; f16v4max $a4:5, $a4:5, $a0:1 }
    .else
    { nop ; mov $a0:1, $a4:5 }
    .endif
    .rept LAST
    { ld64step $a0:1, $m4, $m7+=, 1 ; f16v4max $a4:5, $a4:5, $a0:1 }
    .endr
    CUT_LANES $a0, $a1, $a6
    { mov $m7, $m0 ; f16v4max $a4:5, $a4:5, $a0:1 }
    { ld64step $a0:1, $m4, $m7+=, 1 ; f16v4maxc $a4, $a4:5 }
.endif
    { nop ; f16v2maxc $a4, $a4 }
    { nop ; setzi $a5, SOFTMAX_SCALE & 0xfffff }
    { nop ; or $a5, $a5, SOFTMAX_SCALE & 0xfff00000 }
    { nop ; f16tof32 $a6, $a4 }
    { nop ; f32mul $a6, $a6, $a5 }
    { st32 $a6, $m3, $m6, 0 ; setzi $a3, SOFTMAX_MINUS_SCALE }
    { nop ; sort4x16lo $a2, $a4, $a3 } // low: the maximum, high: -scale
    { nop ; setzi $a6, ONES & 0xfffff }
    { nop ; or $a6, $a6, ONES & 0xfff00000 }
    { nop ; mov $a7, $a6 }

/* A quad: x in $a0:1; the next one is loaded. */
.macro EXPONENTIALS load_step, store_step
    { ld64step $a0:1, $m4, $m7+=, \load_step ; f16v4sub $a4:5, $a2:BL, $a0:1 }
    { nop ; f16v4mul $a4:5, $a2:BU, $a4:5 }
    { nop ; f16v2exp $a4, $a4 }
    { nop ; f16v2exp $a5, $a5 }
    { st64step $a4:5, $m2, $m8+=, \store_step ; f16v4cmac $a4:5, $a6:7 }
.endm

.if FULL
    { rpt FULL, 19 ; fnop }
    EXPONENTIALS 1, 1
    EXPONENTIALS 1, 1
    EXPONENTIALS $m5, 1
    EXPONENTIALS 1, $m5
.endif
.rept LAST - 1
    EXPONENTIALS 1, 1
.endr
    { nop ; f16v4sub $a4:5, $a2:BL, $a0:1 }
    { nop ; f16v4mul $a4:5, $a2:BU, $a4:5 }
    { nop ; f16v2exp $a4, $a4 }
    { nop ; f16v2exp $a5, $a5 }
    CUT_LANES $a4, $a5, $azero
.if LAST == 4 && EMPTY
    { st64step $a4:5, $m2, $m8+=, $m5 ; f16v4cmac $a4:5, $a6:7 }
.else
    { st64step $a4:5, $m2, $m8+=, 1 ; f16v4cmac $a4:5, $a6:7 }
.endif

.set STEP, LAST
.rept 4 - LAST
    .set STEP, STEP + 1
    .if STEP == 4 && EMPTY
    { st64step $azeros, $m2, $m8+=, $m5 ; fnop }
    .else
    { st64step $azeros, $m2, $m8+=, 1 ; fnop }
    .endif
.endr
.if EMPTY
    { rpt EMPTY, 3 ; fnop }
    { st64step $azeros, $m2, $m8+=, 1 ; fnop }
    { st64step $azeros, $m2, $m8+=, 1 ; fnop }
    { st64step $azeros, $m2, $m8+=, 1 ; fnop }
    { st64step $azeros, $m2, $m8+=, $m5 ; fnop }
.endif
    { nop ; f32v2gina $a0:1, $azeros, 0 } // leaves the accumulators zero for the next row
    { add $m0, $m0, 6 * 32 ; f32add $a0, $a0, $a1 }
    st32 $a0, $m3, $m6, ROWS
.if REST && SHARE || SHARE > 1
    add $m6, $m6, 6 * 4
    brnzdec $m9, row
.endif
done:
    exitz $mzero
.size ipu_softmax, . - ipu_softmax
