/* softmax.S - exponentials of attention scores, not divided by their sum, and the statistics for it.
 *
 * Scores and exponentials: F16, Left order (panels of 16 keys, 32 bytes a row). Per row: m = largest
 * score; e = exp(half(scale * (s - m))), F16; statistics F32 [2][rows]: scale * m and the sum of e
 * (F32 sum of the rounded e). Columns from SOFTMAX_KEYS on are read as anything and written as zero.
 *
 * The unit is a quad: four halves, one 64-bit word; a row's quads lie together in fours, then comes
 * the other rows' part of the panel. One pass finds the maximum, one makes the exponentials.
 *
 *   PARTS = 1: one launch, worker w has rows w, w + 6, ...
 *   PARTS = 2, 3, 6: a row's panels go to that many workers, worker w has part w % PARTS of rows
 *   w / PARTS + k * 6 / PARTS. Three launches: maxima of the parts into the frame; exponentials, sums
 *   of the parts into the frame; sums of rows.
 *
 * A part is some full panels, then (the last part) the panel that ends the keys. */
.include "launch.inc"

.set PARTS, SOFTMAX_PARTS
.set ROWS, SOFTMAX_ROWS
.set TEAMS, 6 / PARTS // rows at a time
.set SHARE, ROWS / TEAMS
.set REST, ROWS % TEAMS
.set ROUNDS, SHARE + ((REST != 0) & 1)
.set QUADS, (SOFTMAX_KEYS + 3) / 4 // that hold keys
.set LANES, SOFTMAX_KEYS % 4       // keys in the last one; 0: four
.set JUMP, 4 * ROWS - 3            // words from a panel's last quad of a row to the next panel's first
.set FULL, (QUADS - 1) / 4         // panels before the one that ends the keys
.set LAST, QUADS - 4 * FULL        // quads with keys in that one, 1..4
.set EMPTY, SOFTMAX_PADDED_KEYS / 16 - FULL - 1
.set PANEL_SHARE, (FULL + 1) / PARTS
.set PANEL_REST, (FULL + 1) % PARTS
.set LOWEST, 0xfbfffbff // -65504 twice
.set ONES, 0x3c003c00
.set MAXIMA, 16                             // in the frame
.set PAIRS, (PARTS + 1) / 2                 // of words: a row's maxima or sums
.set SUMS, MAXIMA + ROWS * PAIRS * 8
.if PARTS == 1
    .set FRAME, 4
.else
    .set FRAME, 4 + ROWS * PAIRS * 4
.endif

.section .text.ipu_softmax, "ax"
.globl ipu_softmax
.type ipu_softmax, @function
.supervisor
.align 8
ipu_softmax:
.if PARTS == 1
    LAUNCH_ONCE 3, FRAME, worker
.else
    OPEN_FRAME 3, FRAME, find_maxima
    runall $m0, $m1, 0
    setzi $m0, make_exponentials
    sync 2
    runall $m0, $m1, 0
    setzi $m0, add_sums
    sync 2
    runall $m0, $m1, 0
    sync 2
    br $m10
.endif

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

/* In a part that is not the last one: skips what belongs to the panel that ends the keys. */
.macro UNLESS_LAST_SKIP label
.if PARTS > 1
    { brz $m1, \label ; fnop }
.endif
.endm

/* The largest of the part's scores, in both halves of $a4; the first quad in $a0:1. $m0: offset. */
.macro FIND_MAXIMUM
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
    .if PARTS > 1 || FULL
        .if PARTS > 1
    { rpt $m10, 3 ; mov $a0:1, $a4:5 }
        .else
    { rpt FULL, 3 ; mov $a0:1, $a4:5 }
        .endif
    { ld64step $a0:1, $m4, $m7+=, 1 ; f16v4max $a4:5, $a4:5, $a0:1 }
    { ld64step $a0:1, $m4, $m7+=, 1 ; f16v4max $a4:5, $a4:5, $a0:1 }
    { ld64step $a0:1, $m4, $m7+=, 1 ; f16v4max $a4:5, $a4:5, $a0:1 }
    { ld64step $a0:1, $m4, $m7+=, $m5 ; f16v4max $a4:5, $a4:5, $a0:1 }
    .else
    { nop ; mov $a0:1, $a4:5 }
    .endif
    UNLESS_LAST_SKIP 1f
    .rept LAST
    { ld64step $a0:1, $m4, $m7+=, 1 ; f16v4max $a4:5, $a4:5, $a0:1 }
    .endr
    CUT_LANES $a0, $a1, $a6
1:
    { mov $m7, $m0 ; f16v4max $a4:5, $a4:5, $a0:1 }
    { ld64step $a0:1, $m4, $m7+=, 1 ; f16v4maxc $a4, $a4:5 }
.endif
    { nop ; f16v2maxc $a4, $a4 }
.endm

/* A quad: x in $a0:1; the next one is loaded. $a2: maximum (low), -scale (high); $a6:7: ones. */
.macro EXPONENTIALS load_step, store_step
    { ld64step $a0:1, $m4, $m7+=, \load_step ; f16v4sub $a4:5, $a2:BL, $a0:1 }
    { nop ; f16v4mul $a4:5, $a2:BU, $a4:5 }
    { nop ; f16v2exp $a4, $a4 }
    { nop ; f16v2exp $a5, $a5 }
    { st64step $a4:5, $m2, $m8+=, \store_step ; f16v4cmac $a4:5, $a6:7 }
.endm

/* With the maximum in $a4: its statistics, the part's exponentials, and their sum in $a0. */
.macro MAKE_EXPONENTIALS
    { nop ; setzi $a5, SOFTMAX_SCALE & 0xfffff }
    { nop ; or $a5, $a5, SOFTMAX_SCALE & 0xfff00000 }
    { nop ; f16tof32 $a6, $a4 }
    { nop ; f32mul $a6, $a6, $a5 }
.if PARTS == 1
    { st32 $a6, $m3, $m6, 0 ; setzi $a3, SOFTMAX_MINUS_SCALE }
.else
    { st32 $a6, $m3, $mzero, 0 ; setzi $a3, SOFTMAX_MINUS_SCALE }
.endif
    { nop ; sort4x16lo $a2, $a4, $a3 }
    { nop ; setzi $a6, ONES & 0xfffff }
    { nop ; or $a6, $a6, ONES & 0xfff00000 }
    { nop ; mov $a7, $a6 }
.if PARTS > 1 || FULL
    .if PARTS > 1
    { rpt $m10, 19 ; fnop }
    .else
    { rpt FULL, 19 ; fnop }
    .endif
    EXPONENTIALS 1, 1
    EXPONENTIALS 1, 1
    EXPONENTIALS $m5, 1
    EXPONENTIALS 1, $m5
.endif
    UNLESS_LAST_SKIP 1f
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
1:
    { nop ; f32v2gina $a0:1, $azeros, 0 } // leaves the accumulators zero for the next row
    { nop ; f32add $a0, $a0, $a1 }
.endm

.if PARTS == 1 && QUADS == 1 && EMPTY == 0
/* Few keys, one quad a row: everything stays in registers. $a7: scale, $a3: -scale as a half. */
.align 8
worker:
    { get $m0, $WSR ; setzi $a7, SOFTMAX_SCALE & 0xfffff }
    { ld32 $m2, $mvertex_base, $mzero, 0 ; or $a7, $a7, SOFTMAX_SCALE & 0xfff00000 }
    { ld32 $m3, $mvertex_base, $mzero, 1 ; setzi $a3, SOFTMAX_MINUS_SCALE }
    { ld32 $m4, $mvertex_base, $mzero, 2 ; fnop }
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
    { shl $m6, $m0, 2 ; fnop }
    { shl $m0, $m0, 5 ; fnop }
row:
    { ld64 $a0:1, $m4, $m0, 0 ; setzi $a6, LOWEST & 0xfffff }
    .if LANES
    { nop ; or $a6, $a6, LOWEST & 0xfff00000 }
    CUT_LANES $a0, $a1, $a6
    .endif
    { nop ; f16v4maxc $a4, $a0:1 }
    { nop ; f16v2maxc $a4, $a4 }
    { st64 $azeros, $m2, $m0, 1 ; sort4x16lo $a2, $a4, $a3 }
    { st64 $azeros, $m2, $m0, 2 ; f16tof32 $a6, $a4 }
    { st64 $azeros, $m2, $m0, 3 ; f16v4sub $a4:5, $a2:BL, $a0:1 }
    { nop ; f16v4mul $a4:5, $a2:BU, $a4:5 }
    { nop ; f16v2exp $a4, $a4 }
    { nop ; f16v2exp $a5, $a5 }
    CUT_LANES $a4, $a5, $azero
    { st64 $a4:5, $m2, $m0, 0 ; f16v4sum $a0:1, $a4:5 }
    { nop ; f32mul $a6, $a6, $a7 }
    { st32 $a6, $m3, $m6, 0 ; f32add $a0, $a0, $a1 }
    { st32 $a0, $m3, $m6, ROWS ; fnop }
    .if ROUNDS > 1
    { add $m0, $m0, 6 * 32 ; fnop }
    { add $m6, $m6, 6 * 4 ; fnop }
    { brnzdec $m9, row ; fnop }
    .endif
done:
    exitz $mzero

.elseif PARTS == 1
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
    FIND_MAXIMUM
    MAKE_EXPONENTIALS
    st32 $a0, $m3, $m6, ROWS
    .if ROUNDS > 1
    add $m0, $m0, 6 * 32
    add $m6, $m6, 6 * 4
    brnzdec $m9, row
    .endif
done:
    exitz $mzero

.else
/* $m2, $m4: operands, $m3: the row's statistics, $m0: offset of the part in the team's first row, $m1:
 * not zero in the last part, $m5: JUMP, $m9: rows after the first, $m10: full panels, $m11: the row's
 * words in the frame, $m6: offset of the part's. Teams without rows leave. */
.macro FIND_PART
    get $m0, $WSR
    ld32 $m2, $mvertex_base, $mzero, 0
    ld32 $m3, $mvertex_base, $mzero, 1
    ld32 $m4, $mvertex_base, $mzero, 2
    .if PARTS == 2 // $m7: team, $m6: part
    shr $m7, $m0, 1
    and $m6, $m0, 1
    .elseif PARTS == 3
    cmpult $m7, $m0, 3
    sub $m7, 1, $m7
    mul $m6, $m7, 3
    sub $m6, $m0, $m6
    .else
    setzi $m7, 0
    mov $m6, $m0
    .endif
    .if REST
    cmpult $m9, $m7, REST
        .if SHARE
    add $m9, $m9, SHARE - 1
        .else
    brz $m9, done
        .endif
    .else
    setzi $m9, SHARE - 1
    .endif
    cmpeq $m1, $m6, PARTS - 1
    mul $m0, $m6, PANEL_SHARE // panels before the part
    min $m8, $m6, PANEL_REST
    add $m0, $m0, $m8
    cmpult $m10, $m6, PANEL_REST
    add $m10, $m10, PANEL_SHARE
    sub $m10, $m10, $m1
    setzi $m8, ROWS * 32
    mul $m0, $m0, $m8
    shl $m8, $m7, 5
    add $m0, $m0, $m8
    setzi $m5, JUMP
    mul $m11, $m7, PAIRS * 8
    add $m11, $m11, $mvertex_base
    shl $m7, $m7, 2
    add $m3, $m3, $m7
    shl $m6, $m6, 2
.endm

.macro NEXT_ROW label
    .if ROUNDS > 1
    add $m0, $m0, TEAMS * 32
    add $m3, $m3, TEAMS * 4
    add $m11, $m11, TEAMS * PAIRS * 8
    brnzdec $m9, \label
    .endif
.endm

.align 8
find_maxima:
    FIND_PART
.align 8
maximum:
    FIND_MAXIMUM
    st32 $a4, $m11, $m6, MAXIMA / 4
    NEXT_ROW maximum
done:
    exitz $mzero

.align 8
make_exponentials:
    FIND_PART
.align 8
    { nop ; setzi $a7, 8 }
    { nop ; uput $FP_CLR, $a7 } // zero accumulators
exponentials:
    .if PARTS == 6
    { ld64 $a4:5, $m11, $mzero, MAXIMA / 8 ; fnop }
    { ld64 $a0:1, $m11, $mzero, MAXIMA / 8 + 1 ; fnop }
    { ld64 $a2:3, $m11, $mzero, MAXIMA / 8 + 2 ; f16v4max $a4:5, $a4:5, $a0:1 }
    { mov $m7, $m0 ; f16v4max $a4:5, $a4:5, $a2:3 }
    .elseif PARTS == 3
    { ld64 $a4:5, $m11, $mzero, MAXIMA / 8 ; fnop }
    { ld32 $a0, $m11, $mzero, MAXIMA / 4 + 2 ; fnop }
    { mov $m7, $m0 ; f16v2max $a4, $a4, $a0 }
    .else
    { ld64 $a4:5, $m11, $mzero, MAXIMA / 8 ; fnop }
    { mov $m7, $m0 ; fnop }
    .endif
    { mov $m8, $m0 ; f16v2max $a4, $a4, $a5 }
    { ld64step $a0:1, $m4, $m7+=, 1 ; fnop }
    MAKE_EXPONENTIALS
    .if ROUNDS > 1
    { st32 $a0, $m11, $m6, SUMS / 4 ; fnop }
    .else
    st32 $a0, $m11, $m6, SUMS / 4
    .endif
    NEXT_ROW exponentials
    exitz $mzero

/* Worker w: rows w, w + 6, ... */
.align 8
add_sums:
    get $m0, $WSR
    ld32 $m3, $mvertex_base, $mzero, 1
    .if ROWS < 6
    cmpult $m9, $m0, ROWS
    brz $m9, done
    .elseif ROWS % 6
    cmpult $m9, $m0, ROWS % 6
    add $m9, $m9, ROWS / 6 - 1
    .elseif ROWS > 6
    setzi $m9, ROWS / 6 - 1
    .endif
    mul $m11, $m0, PAIRS * 8
    add $m11, $m11, $mvertex_base
    shl $m0, $m0, 2
sum:
    ld64 $a0:1, $m11, $mzero, SUMS / 8
    .if PARTS == 6
    ld64 $a2:3, $m11, $mzero, SUMS / 8 + 1
    ld64 $a4:5, $m11, $mzero, SUMS / 8 + 2
    f32v2add $a0:1, $a0:1, $a2:3
    f32v2add $a0:1, $a0:1, $a4:5
    .elseif PARTS == 3
    ld32 $a2, $m11, $mzero, SUMS / 4 + 2
    .endif
    f32add $a0, $a0, $a1
    .if PARTS == 3
    f32add $a0, $a0, $a2
    .endif
    st32 $a0, $m3, $m0, ROWS
    .if ROWS > 6
    add $m0, $m0, 6 * 4
    add $m11, $m11, 6 * PAIRS * 8
    brnzdec $m9, sum
    .endif
    exitz $mzero
.endif
.size ipu_softmax, . - ipu_softmax
