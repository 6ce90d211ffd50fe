/* unpack.S - an order of the matrix unit into row-major F16 matrices; padding is left out.
 *
 * UNPACK_TRANSPOSED 0: Left, the smallest piece is 16 values of a row in 32 bytes; rows are dealt to the
 *   workers in turn. 1: Transposed Left, 16 values of a column in 32 bytes; rows are dealt in fours, four
 *   rows by two columns are transposed in registers.
 * Rows of the result are aligned to UNPACK_ALIGN (4 or 8) bytes; columns are even. */
.set ROWS, UNPACK_ROWS
.set COLUMNS, UNPACK_COLUMNS
.set PITCH, UNPACK_PITCH // bytes
.set WHOLE, COLUMNS / 16
.set WORDS, COLUMNS % 16 / 4
.set HALF_WORD, ((COLUMNS % 4) != 0) & 1

.macro CONSTANT register, value
    setzi \register, (\value) & 0xfffff
    .if (\value) & 0xfff00000
    or \register, \register, (\value) & 0xfff00000
    .endif
.endm

.section .text.ipu_unpack, "ax"
.globl ipu_unpack
.type ipu_unpack, @function
.supervisor
.align 8
ipu_unpack:
    add $m1, $m11, -8 // frame below the stack: out, in
    setzi $m0, worker
    st32 $m2, $m1, $mzero, 0
    st32 $m3, $m1, $mzero, 1
    runall $m0, $m1, 0
    sync 2
    br $m10

.worker
.align 8
worker:
    get $m0, $WSR
    ld32 $m2, $mvertex_base, $mzero, 0
    ld32 $m3, $mvertex_base, $mzero, 1
.if UNPACK_MATRICES > 1
    setzi $m10, UNPACK_MATRICES - 1
.endif

.if UNPACK_TRANSPOSED == 0
.macro WORD step
    { ld64step $a0:1, $mzero, $m7+=, \step ; fnop }
    .if UNPACK_ALIGN == 8
    { st64step $a0:1, $mzero, $m6+=, 1 ; fnop }
    .else
    { st32step $a0, $mzero, $m6+=, 1 ; fnop }
    { st32step $a1, $mzero, $m6+=, 1 ; fnop }
    .endif
.endm
.set WORD_BUNDLES, 2 + ((UNPACK_ALIGN == 4) & 1)

    CONSTANT $m8, (UNPACK_PIECE_STEP-24)/8 // from a piece's last word to the row's next piece
    .align 8
matrix:
    .if ROWS % 6
    cmpult $m1, $m0, ROWS % 6
        .if ROWS / 6
    add $m1, $m1, ROWS / 6 - 1
        .else
    brz $m1, rows_done
    setzi $m1, 0
        .endif
    .else
    setzi $m1, ROWS / 6 - 1
    .endif
    mul $m9, $m0, PITCH
    shl $m5, $m0, 5
    add $m9, $m2, $m9
    add $m5, $m3, $m5
    .align 8
row:
    mov $m6, $m9
    mov $m7, $m5
    add $m9, $m9, 6 * PITCH
    add $m5, $m5, 192
    .if WHOLE
    { rpt WHOLE, 4 * WORD_BUNDLES - 1 ; fnop }
    WORD 1
    WORD 1
    WORD 1
    WORD $m8
    .endif
    .rept WORDS
    WORD 1
    .endr
    .if HALF_WORD
    { ld32 $a0, $m7, $mzero, 0 ; fnop }
    { st32 $a0, $m6, $mzero, 0 ; fnop }
    .endif
    { brnzdec $m1, row ; fnop }
rows_done:

.else
/* $m4: the first of four rows; $m5..$m8: their places, $m9: byte offset in them; $m1: source. */
.macro PAIR have
    { ld64step $a0:1, $mzero, $m1+=, 4 ; fnop }
    { ld64step $a2:3, $mzero, $m1+=, 4 ; fnop }
    { nop ; sort4x16lo $a4, $a0, $a2 }
    { st32 $a4, $m5, $m9, 0 ; sort4x16hi $a5, $a0, $a2 }
    .if \have > 1
    { st32 $a5, $m6, $m9, 0 ; sort4x16lo $a6, $a1, $a3 }
    .endif
    .if \have > 2
    { st32 $a6, $m7, $m9, 0 ; sort4x16hi $a7, $a1, $a3 }
    .endif
    .if \have > 3
    { st32step $a7, $m8, $m9+=, 1 ; fnop }
    .else
    { add $m9, $m9, 4 ; fnop }
    .endif
.endm
.macro FOUR_ROWS have
    setzi $m9, 0
    .align 8
    .if \have > 3
    { rpt COLUMNS / 2, 6 ; fnop }
    .else
    { rpt COLUMNS / 2, 3 + \have ; fnop }
    .endif
    PAIR \have
    add $m4, $m4, 24
    bri next_rows
.endm
.set FULL_ROWS, ROWS / 4 * 4

    .align 8
matrix:
    shl $m4, $m0, 2
    .align 8
next_rows:
    cmpult $m11, $m4, ROWS
    brz $m11, matrix_done
    shr $m1, $m4, 4
    mul $m1, $m1, 32 * UNPACK_PHYSICAL_COLUMNS
    and $m5, $m4, 15
    shl $m5, $m5, 1
    add $m1, $m1, $m5
    add $m1, $m1, $m3
    mul $m5, $m4, PITCH
    add $m5, $m5, $m2
    add $m6, $m5, PITCH
    add $m7, $m6, PITCH
    add $m8, $m7, PITCH
    .if ROWS % 4
        .if FULL_ROWS
    cmpult $m11, $m4, FULL_ROWS
    brnz $m11, full_rows
        .endif
    FOUR_ROWS (ROWS%4)
    .endif
    .if FULL_ROWS
        .if ROWS % 4
    .align 8
        .endif
full_rows:
    FOUR_ROWS 4
    .endif
matrix_done:
.endif

.if UNPACK_MATRICES > 1
    CONSTANT $m5, (ROWS*PITCH)
    CONSTANT $m6, UNPACK_MATRIX_BYTES
    add $m2, $m2, $m5
    add $m3, $m3, $m6
    brnzdec $m10, matrix
.endif
    exitz $mzero
