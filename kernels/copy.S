/* copy.S - COPY_ROWS rows of COPY_ROW_BYTES bytes, with a pitch on either side.
 *
 * The unit is a 64-bit word when all sizes allow it, else 32 bits. Ways to deal the work:
 *   flat    the units of a row in turn (w, w + 6, ...), row after row: one row, or few long ones
 *   dealt   whole rows in turn; rows of up to 16 units are written out as one repeat body, whose last
 *           load and store step to the next row
 *   long    whole rows in turn, a repeat a row
 * Big copies (the operands are in different elements then) load and store in one bundle, one unit behind
 * each other:
 *   paced   one row, its units in turn
 *   stream  a piece of every row, COPY_WORDS words, for each worker, or (COPY_DEALT) whole rows in turn. The steps to the next row are in the last load and store;
 *           what exceeds a step's ten bits is added to the packed addresses: to address 0, which is
 *           low in the first register, and to the upper bits of address 2, high in the second. */
.include "launch.inc"
.set UNIT, 8
.if (COPY_ROW_BYTES | COPY_OUT_PITCH | COPY_IN_PITCH) % 8
    .set UNIT, 4
.endif
.set W, COPY_ROW_BYTES / UNIT
.set FLAT, 0
.set DEALT, 1
.set LONG, 2
.set PACED, 3
.set STREAM, 4
.set IN_JUMP, (6 * COPY_IN_PITCH - (W - 1) * UNIT) / UNIT // units, from a row's last to the next row
.set OUT_JUMP, (6 * COPY_OUT_PITCH - (W - 1) * UNIT) / UNIT

/* One unit, pointers stepped by an immediate or a register. */
.macro LOAD base, pointer, step
    .if UNIT == 8
    { ld64step $a0:1, \base, \pointer+=, \step ; fnop }
    .else
    { ld32step $a0, \base, \pointer+=, \step ; fnop }
    .endif
.endm
.macro STORE base, pointer, step
    .if UNIT == 8
    { st64step $a0:1, \base, \pointer+=, \step ; fnop }
    .else
    { st32step $a0, \base, \pointer+=, \step ; fnop }
    .endif
.endm

.section .text.ipu_copy, "ax"
.globl ipu_copy
.type ipu_copy, @function
.supervisor
.align 8
ipu_copy:
    LAUNCH_ONCE 2, 2, worker

.worker
.align 8
worker:
.if COPY_MODE == STREAM
    { get $m0, $WSR ; fnop } // aligned for the repeat
.else
    get $m0, $WSR
.endif
    ld32 $m2, $mvertex_base, $mzero, 0
    ld32 $m3, $mvertex_base, $mzero, 1

.if COPY_MODE == FLAT || COPY_MODE == PACED
    .set SHARE, W / 6
    .set REST, W % 6
    .if UNIT == 8
    shl $m4, $m0, 3
    .else
    shl $m4, $m0, 2
    .endif
    .if REST
    cmpult $m1, $m0, REST // 1: one unit more
    .endif
    .if COPY_MODE == PACED
        .if REST
    add $m1, $m1, SHARE - 1
        .else
    setzi $m1, SHARE - 1
        .endif
    add $m3, $m3, $m4
    add $m2, $m2, $m4
    ld64step $a0:1, $mzero, $m3+=, 6
    tapack $m4:5, $m3, $mzero, $m2
    setzi $m6, 6
    .align 8
    { rpt $m1, 0 ; fnop }
    { ldst64pace $a0:1, $a0:1, $m4:5+=, $m6, 1 | 1 << 2 ; fnop }
    st64pace $a0:1, $m4:5+=, $mzero, 0
    .else
        .if REST
    add $m1, $m1, SHARE
        .else
    setzi $m1, SHARE
        .endif
        .if COPY_ROWS > 1
    mov $m6, $m4
    setzi $m7, COPY_ROWS - 1
    CONSTANT $m8, COPY_IN_PITCH
    CONSTANT $m9, COPY_OUT_PITCH
    .align 8
row:
    mov $m4, $m6
    mov $m5, $m6
        .else
    mov $m5, $m4
        .endif
    .align 8
    { rpt $m1, 1 ; fnop }
    LOAD $m3, $m4, 6
    STORE $m2, $m5, 6
        .if COPY_ROWS > 1
    add $m3, $m3, $m8
    add $m2, $m2, $m9
    brnzdec $m7, row
        .endif
    .endif

.elseif COPY_MODE == STREAM
    .set ADDS, ((COPY_IN_ADD != 0) & 1) + ((COPY_OUT_ADD != 0) & 1)
    .if COPY_DEALT
        .set SHARE, COPY_ROWS / 6
        .if COPY_ROWS % 6
    { cmpult $m1, $m0, COPY_ROWS % 6 ; fnop }
    { add $m1, $m1, SHARE - 1 ; fnop }
        .else
    { setzi $m1, SHARE - 1 ; fnop }
        .endif
    { mul $m4, $m0, COPY_IN_PITCH ; fnop }
    { mul $m5, $m0, COPY_OUT_PITCH ; fnop }
    { add $m3, $m3, $m4 ; fnop }
    { add $m2, $m2, $m5 ; fnop }
    .else
    { mul $m4, $m0, COPY_WORDS * 8 ; fnop }
        .if COPY_WORDS * 6 != W // the last pieces overlap
    { min $m4, $m4, (W - COPY_WORDS) * 8 ; fnop }
        .endif
    { add $m3, $m3, $m4 ; fnop }
    { add $m2, $m2, $m4 ; fnop }
    .endif
    .if COPY_IN_ADD
    { setzi $m7, COPY_IN_ADD ; fnop }
    .endif
    .if COPY_OUT_ADD
    { setzi $m8, COPY_OUT_ADD ; fnop }
    { shl $m8, $m8, 21 ; fnop }
    .endif
    { setzi $m6, (COPY_IN_STEP & 0x3ff) | (COPY_OUT_STEP & 0x3ff) << 10 ; fnop }
    { ld64 $a0:1, $m3, $mzero, 0 ; fnop }
    .if COPY_WORDS == 1
    { add $m3, $m3, 8 * COPY_IN_STEP ; fnop }
    .else
    { add $m3, $m3, 8 ; fnop }
    .endif
    { tapack $m4:5, $m3, $mzero, $m2 ; fnop }
    .if COPY_DEALT
    { rpt $m1, COPY_WORDS - 1 + ADDS ; fnop }
    .else
    { rpt COPY_ROWS - 1, COPY_WORDS - 1 + ADDS ; fnop }
    .endif
    .if COPY_WORDS == 1
    { ldst64pace $a0:1, $a0:1, $m4:5+=, $m6, 1 | 2 << 2 ; fnop }
    .else // loads are one ahead: the jump comes after the row's last load
        .rept COPY_WORDS - 2
    { ldst64pace $a0:1, $a0:1, $m4:5+=, $m6, 0 ; fnop }
        .endr
    { ldst64pace $a0:1, $a0:1, $m4:5+=, $m6, 1 ; fnop }
        .if COPY_IN_ADD
    { add $m4, $m4, $m7 ; fnop }
        .endif
    { ldst64pace $a0:1, $a0:1, $m4:5+=, $m6, 2 << 2 ; fnop }
    .endif
    .if COPY_OUT_ADD
    { add $m5, $m5, $m8 ; fnop }
    .endif
    .rept COPY_WORDS - 1
    { ldst64pace $a0:1, $a0:1, $m4:5+=, $m6, 0 ; fnop }
    .endr
    { st64pace $a0:1, $m4:5+=, $mzero, 0 ; fnop }

.else
    .set SHARE, COPY_ROWS / 6
    .set REST, COPY_ROWS % 6
    CONSTANT $m4, COPY_IN_PITCH
    CONSTANT $m5, COPY_OUT_PITCH
    mul $m4, $m4, $m0
    mul $m5, $m5, $m0
    .if REST
    cmpult $m1, $m0, REST
        .if SHARE
    add $m1, $m1, SHARE - COPY_LESS
        .elseif COPY_LESS
    add $m1, $m1, -COPY_LESS
        .endif
    .else
    setzi $m1, SHARE - COPY_LESS
    .endif
    add $m3, $m3, $m4
    add $m2, $m2, $m5
    .if COPY_MODE == DEALT
    CONSTANT $m6, IN_JUMP
    CONSTANT $m7, OUT_JUMP
    .align 8
    { rpt $m1, 2 * W - 1 ; fnop }
        .rept W - 1
    LOAD $mzero, $m3, 1
    STORE $mzero, $m2, 1
        .endr
    LOAD $mzero, $m3, $m6
    STORE $mzero, $m2, $m7
    .else
        .if SHARE == 0
    brneg $m1, done
        .endif
    CONSTANT $m6, (6*COPY_IN_PITCH-COPY_ROW_BYTES)
    CONSTANT $m7, (6*COPY_OUT_PITCH-COPY_ROW_BYTES)
    .align 8
row:
    { rpt W, 1 ; fnop }
    LOAD $mzero, $m3, 1
    STORE $mzero, $m2, 1
    add $m3, $m3, $m6
    add $m2, $m2, $m7
    { brnzdec $m1, row ; fnop }
    .endif
.endif
done:
    exitz $mzero
