/* pack.S - row-major F16 matrices into an order of the matrix unit; padding becomes zero.
 *
 * PACK_WAY says how:
 *   ROWS_WAY   orders whose smallest piece is 16 values of a row in 32 bytes (Left, Transposed Right). Rows
 *              are dealt to the workers in turn. A row's pieces lie PACK_PIECE_STEP bytes apart; row r
 *              begins at 32 r, plus PACK_BLOCK_JUMP for every 16 rows.
 * and for Block Major, where the smallest piece is 16 values of a column in 32 bytes:
 *   QUADS_WAY  16 rows by 4 columns, 128 bytes, are dealt to the workers in turn and transposed in a
 *              stream (transpose.inc); rows of the source are on 8 bytes, columns a multiple of 4
 *   FOURS_WAY  rows are dealt in fours; four rows by four columns are loaded along the rows, transposed
 *              in registers and stored along the columns, 32 bytes apart
 *
 * PACK_ALIGN: 8, 4 or 2, what rows of the source are aligned to. */
.set ROWS_WAY, 0
.set QUADS_WAY, 1
.set FOURS_WAY, 2
.include "launch.inc"
.include "transpose.inc"
.set ROWS, PACK_ROWS
.set COLUMNS, PACK_COLUMNS
.set PITCH, PACK_PITCH // bytes
.set PIECES, PACK_PHYSICAL_COLUMNS / 16
.set WHOLE, COLUMNS / 16     // pieces full of values
.set WORDS, COLUMNS % 16 / 4 // of the next piece: words full of values,
.set HALVES, COLUMNS % 4     // and values in the word after them

.section .text.ipu_pack, "ax"
.globl ipu_pack
.type ipu_pack, @function
.supervisor
.align 8
ipu_pack:
    LAUNCH_ONCE 2, 2, worker

.worker
.align 8
worker:
    get $m0, $WSR
    ld32 $m2, $mvertex_base, $mzero, 0
    ld32 $m3, $mvertex_base, $mzero, 1
.if PACK_MATRICES > 1
    setzi $m10, PACK_MATRICES - 1
.endif

.if PACK_WAY == ROWS_WAY
/* $m7: source, $m6: destination, $m8: the step from a piece's last word to the next piece. */
.macro TO_NEXT source, step
    { st64step \source, $mzero, $m6+=, \step ; fnop }
.endm
.macro WORD step
    .if PACK_ALIGN == 8
    { ld64step $a0:1, $mzero, $m7+=, 1 ; fnop }
    TO_NEXT $a0:1, \step
    .elseif PACK_ALIGN == 4
    { ld32step $a0, $mzero, $m7+=, 1 ; fnop }
    { ld32step $a1, $mzero, $m7+=, 1 ; fnop }
    TO_NEXT $a0:1, \step
    .else
    { ldb16step $a0, $mzero, $m7+=, 1 ; fnop }
    { ldb16step $a1, $mzero, $m7+=, 1 ; fnop }
    { ldb16step $a2, $mzero, $m7+=, 1 ; sort4x16lo $a0, $a0, $a1 }
    { ldb16step $a3, $mzero, $m7+=, 1 ; fnop }
    { nop ; sort4x16lo $a1, $a2, $a3 }
    TO_NEXT $a0:1, \step
    .endif
.endm
/* HALVES values and zeros behind them. */
.macro LAST_WORD step
    { ldb16step $a0, $mzero, $m7+=, 1 ; mov $a1, $azero }
    .if HALVES == 1
    { nop ; sort4x16lo $a0, $a0, $azero }
    .else
    { ldb16step $a2, $mzero, $m7+=, 1 ; fnop }
        .if HALVES == 2
    { nop ; sort4x16lo $a0, $a0, $a2 }
        .else
    { ldb16step $a3, $mzero, $m7+=, 1 ; sort4x16lo $a0, $a0, $a2 }
    { nop ; sort4x16lo $a1, $a3, $azero }
        .endif
    .endif
    TO_NEXT $a0:1, \step
.endm
.set WORD_BUNDLES, 2 + (PACK_ALIGN == 4) * -1 + (PACK_ALIGN == 2) * -4
.set LAST_USED, (HALVES != 0) & 1
.set ZERO_WORDS, (4 - WORDS - LAST_USED) * (((COLUMNS % 16) != 0) & 1)

    CONSTANT $m8, (PACK_PIECE_STEP-24)/8
.align 8
matrix:
    mov $m4, $m0
    DEAL ROWS, rows_done
    mul $m7, $m0, PITCH
    add $m9, $m3, $m7
    .align 8
row:
    mov $m7, $m9
    shl $m6, $m4, 5
    add $m6, $m2, $m6
    .if PACK_BLOCK_JUMP
    shr $m5, $m4, 4
    mul $m5, $m5, PACK_BLOCK_JUMP
    add $m6, $m6, $m5
    .endif
    add $m9, $m9, 6 * PITCH
    add $m4, $m4, 6
    .align 8
    .if WHOLE
    { rpt WHOLE, 4 * WORD_BUNDLES - 1 ; fnop }
    WORD 1
    WORD 1
    WORD 1
    WORD $m8
    .endif
    .if COLUMNS % 16
        .rept WORDS
    WORD 1
        .endr
        .if LAST_USED
            .if ZERO_WORDS
    LAST_WORD 1
            .else
    LAST_WORD $m8
            .endif
        .endif
        .if ZERO_WORDS
            .rept ZERO_WORDS - 1
    TO_NEXT $azeros, 1
            .endr
    TO_NEXT $azeros, $m8
        .endif
    .endif
    .set EMPTY, PIECES - WHOLE - (((COLUMNS % 16) != 0) & 1)
    .if EMPTY
    { rpt EMPTY, 3 ; fnop }
    TO_NEXT $azeros, 1
    TO_NEXT $azeros, 1
    TO_NEXT $azeros, 1
    TO_NEXT $azeros, $m8
    .endif
    { brnzdec $m1, row ; fnop }
rows_done:
    .set PADDED, PACK_PHYSICAL_ROWS - ROWS
    .if PADDED
    add $m4, $m0, ROWS
    DEAL PADDED, padding_done
    .align 8
padded_row:
    shl $m6, $m4, 5
    add $m6, $m2, $m6
    .if PACK_BLOCK_JUMP
    shr $m5, $m4, 4
    mul $m5, $m5, PACK_BLOCK_JUMP
    add $m6, $m6, $m5
    .endif
    add $m4, $m4, 6
    .align 8
    { rpt PIECES, 3 ; fnop }
    TO_NEXT $azeros, 1
    TO_NEXT $azeros, 1
    TO_NEXT $azeros, 1
    TO_NEXT $azeros, $m8
    { brnzdec $m1, padded_row ; fnop }
padding_done:
    .endif

.elseif PACK_WAY == QUADS_WAY
/* $m9: the worker's next column quad, $m3 and $m2: where the rows at hand begin. First all whole panels
 * of 16 rows, a quad after the other: a stream of loads that are a row apart. */
.set QUADS, PACK_PHYSICAL_COLUMNS / 4
.set PANELS, ROWS / 16
.set SOME_ROWS, ROWS % 16
.set EMPTY_PANELS, PACK_PHYSICAL_ROWS / 16 - (ROWS + 15) / 16
.set PARTS, ((PANELS > 0) & 1) + ((SOME_ROWS > 0) & 1) + ((EMPTY_PANELS > 0) & 1) // loops over the quads
.set MORE_QUADS, QUADS > 6 || PARTS > 1                               // for a worker
.set PADDED, COLUMNS < PACK_PHYSICAL_COLUMNS
.set WORD_PITCH, PITCH / 8
.set GROUP_BYTES, 512 * (PACK_ROW_BLOCK / 16) // from 16 columns to the next
.if PACK_ROW_BLOCK == 16
    .set PANEL_BYTES, 32 * PACK_PHYSICAL_COLUMNS
.else // one block of rows
    .set PANEL_BYTES, 512
.endif
.set STEP_LOAD, 1
.set STEP_STORE, 2
.set STEP_BLOCK, 3

/* The worker's quads of `panels` panels, each by `body` or, in padding columns, by NO_ROWS. */
.macro EACH_QUAD body, panels
1:
    { cmpult $m1, $m9, QUADS ; fnop }
    { brz $m1, 3f ; fnop }
    .if GROUP_BYTES == 512
    { shl $m8, $m9, 7 ; fnop }
    .else
    { shr $m8, $m9, 2 ; fnop }
    { mul $m8, $m8, GROUP_BYTES ; fnop }
    { and $m1, $m9, 3 ; fnop }
    { shl $m1, $m1, 7 ; fnop }
    { add $m8, $m8, $m1 ; fnop }
    .endif
    { add $m8, $m8, $m2 ; fnop }
    .if PADDED
    { cmpult $m1, $m9, COLUMNS / 4 ; fnop }
    { brz $m1, 2f ; fnop }
    .endif
    { shl $m7, $m9, 3 ; fnop }
    { add $m7, $m7, $m3 ; fnop }
    \body
    .if MORE_QUADS
    { add $m9, $m9, 6 ; fnop }
    { bri 1b ; fnop }
    .elseif PADDED
    { bri 3f ; fnop }
    .endif
    .if PADDED
2:
    NO_ROWS \panels
        .if MORE_QUADS
    { add $m9, $m9, 6 ; fnop }
    { bri 1b ; fnop }
        .endif
    .endif
3:
    .if PARTS > 1
    { add $m9, $m9, -QUADS ; fnop }
    FORWARD $m3, 16*PITCH*(\panels)
    FORWARD $m2, PANEL_BYTES*(\panels)
    .endif
.endm
.macro FORWARD register, bytes
    { setzi $m1, \bytes ; fnop }
    { add \register, \register, $m1 ; fnop }
.endm
.macro NO_ROWS panels
    .if \panels > 1
    { setzi $m11, \panels - 1 ; fnop }
    .endif
4:
    { rpt 16, 0 ; fnop }
    { st64step $azeros, $mzero, $m8+=, 1 ; fnop }
    .if \panels > 1
    { add $m8, $m8, PANEL_BYTES - 128 ; fnop }
    { brnzdec $m11, 4b ; fnop }
    .endif
.endm
.macro ALL_ROWS
    .if PANELS > 1
    { setzi $m1, WORD_PITCH | (PANEL_BYTES / 8 - 15) << 10 ; fnop }
    .endif
    TRANSPOSE_GROUPS PANELS, $m0, STEP_STORE, $m1
.endm
.macro SOME_OF_ROWS
    .set STRIP, 0
    .rept SOME_ROWS / 4
    TRANSPOSE_ONE 4, 4*STRIP*WORD_PITCH, WORD_PITCH, STRIP, 4, "nop"
    .set STRIP, STRIP + 1
    .endr
    .if SOME_ROWS % 4
    TRANSPOSE_ONE (SOME_ROWS%4), 4*STRIP*WORD_PITCH, WORD_PITCH, STRIP, 4, "nop"
    .set STRIP, STRIP + 1
    .endif
    .rept 4 - (SOME_ROWS + 3) / 4
    { st64 $azeros, $m8, $mzero, STRIP ; fnop }
    { st64 $azeros, $m8, $mzero, STRIP + 4 ; fnop }
    { st64 $azeros, $m8, $mzero, STRIP + 8 ; fnop }
    { st64 $azeros, $m8, $mzero, STRIP + 12 ; fnop }
    .set STRIP, STRIP + 1
    .endr
.endm

    .align 8
matrix:
    { get $m9, $WSR ; fnop }
.if PANELS
    { setzi $m0, (1 - 12) & 0x3ff ; fnop }
    { shl $m0, $m0, 20 ; fnop }
    { setzi $m6, WORD_PITCH | 4 << 10 ; fnop }
    { or $m6, $m6, $m0 ; fnop }
    { setzi $m0, WORD_PITCH ; fnop }
    EACH_QUAD ALL_ROWS, PANELS
.endif
.if SOME_ROWS
    EACH_QUAD SOME_OF_ROWS, 1
.endif
.if EMPTY_PANELS
    EACH_QUAD "NO_ROWS EMPTY_PANELS", EMPTY_PANELS
.endif

.else
/* $m4: the first of four rows; $m5..$m8: their sources, $m9: byte offset in them; $m1: destination. */
.set GROUP_BYTES, 512 * (PACK_ROW_BLOCK / 16) // from a column group to the next
.set FULL_ROWS, ROWS / 4 * 4
.set BLOCK_BYTES, GROUP_BYTES * PIECES
.set RECIPROCAL, ((1 << 20) + PACK_ROW_BLOCK - 1) / PACK_ROW_BLOCK
.set PAIRED, (PACK_ALIGN >= 4) & 1

/* Two columns of four rows; the next pair's first word is loaded ahead (it is within the rows). */
.macro PAIR
    { ld32 $a1, $m6, $m9, 0 ; fnop }
    { ld32 $a2, $m7, $m9, 0 ; sort4x16lo $a4, $a0, $a1 }
    { ld32step $a3, $m8, $m9+=, 1 ; sort4x16hi $a6, $a0, $a1 }
    { ld32 $a0, $m5, $m9, 0 ; sort4x16lo $a5, $a2, $a3 }
    { st64step $a4:5, $mzero, $m1+=, 4 ; sort4x16hi $a7, $a2, $a3 }
    { st64step $a6:7, $mzero, $m1+=, 4 ; fnop }
.endm

/* One column of `have` rows. */
.macro COLUMN have
    { ldb16 $a0, $m5, $m9, 0 ; mov $a1, $azero }
    .if \have > 1
    { ldb16 $a1, $m6, $m9, 0 ; mov $a2, $azero }
    .else
    { nop ; mov $a2, $azero }
    .endif
    .if \have > 2
    { ldb16 $a2, $m7, $m9, 0 ; sort4x16lo $a4, $a0, $a1 }
    .else
    { nop ; sort4x16lo $a4, $a0, $a1 }
    .endif
    .if \have > 3
    { ldb16 $a3, $m8, $m9, 0 ; fnop }
    .else
    { nop ; mov $a3, $azero }
    .endif
    { add $m9, $m9, 2 ; sort4x16lo $a5, $a2, $a3 }
    { st64step $a4:5, $mzero, $m1+=, 4 ; fnop }
.endm

.macro ZERO_COLUMNS count
    { rpt \count, 0 ; fnop }
    { st64step $azeros, $mzero, $m1+=, 4 ; fnop }
.endm

.macro GROUP_END
    .if PACK_ROW_BLOCK > 16
    { add $m1, $m1, GROUP_BYTES - 512 ; fnop }
    .endif
.endm

.macro FOUR_ROWS have, paired
    mul $m5, $m4, PITCH
    add $m5, $m3, $m5
    add $m6, $m5, PITCH
    add $m7, $m6, PITCH
    add $m8, $m7, PITCH
    setzi $m9, 0
    .if \paired
    { ld32 $a0, $m5, $mzero, 0 ; fnop }
    .endif
    .if WHOLE
    { setzi $m11, WHOLE - 1 ; fnop }
1:
        .if \paired
    { rpt 8, 5 ; fnop }
    PAIR
        .else
    { rpt 16, 5 ; fnop }
    COLUMN \have
        .endif
    GROUP_END
    { brnzdec $m11, 1b ; fnop }
    .endif
    .if COLUMNS % 16
        .if \paired
    { rpt COLUMNS % 16 / 2, 5 ; fnop }
    PAIR
            .if COLUMNS % 2
    COLUMN \have
            .endif
        .else
    { rpt COLUMNS % 16, 5 ; fnop }
    COLUMN \have
        .endif
    ZERO_COLUMNS (16-COLUMNS%16)
    GROUP_END
    .endif
    .set EMPTY, PIECES - (COLUMNS + 15) / 16
    .if EMPTY
    ZERO_GROUPS EMPTY
    .endif
.endm

.macro ZERO_GROUPS count
    { setzi $m11, \count - 1 ; fnop }
2:
    ZERO_COLUMNS 16
    GROUP_END
    { brnzdec $m11, 2b ; fnop }
.endm

    .align 8
matrix:
    shl $m4, $m0, 2
    .align 8
next_rows:
    cmpult $m11, $m4, PACK_PHYSICAL_ROWS
    brz $m11, matrix_done
    and $m1, $m4, 15 // 2 (r % 16) + 512 (r / 16) within a row block
    shl $m1, $m1, 1
    .if PACK_ROW_BLOCK == PACK_PHYSICAL_ROWS
    mov $m7, $m4
    .else
    setzi $m5, RECIPROCAL
    mul $m5, $m5, $m4
    shr $m5, $m5, 20 // row block
    mul $m6, $m5, PACK_ROW_BLOCK
    sub $m7, $m4, $m6
    CONSTANT $m6, BLOCK_BYTES
    mul $m5, $m5, $m6
    add $m1, $m1, $m5
    .endif
    shr $m7, $m7, 4
    shl $m7, $m7, 9
    add $m1, $m1, $m7
    add $m1, $m1, $m2
    .if FULL_ROWS
    cmpult $m11, $m4, FULL_ROWS
    brnz $m11, full_rows
    .endif
    .if ROWS % 4
    cmpeq $m11, $m4, FULL_ROWS
    brnz $m11, some_rows
    .endif
    .if PACK_PHYSICAL_ROWS > (ROWS + 3) / 4 * 4
    .align 8
    ZERO_GROUPS PIECES
    add $m4, $m4, 24
    bri next_rows
    .endif
    .if FULL_ROWS
    .align 8
full_rows:
    FOUR_ROWS 4, PAIRED
    add $m4, $m4, 24
    bri next_rows
    .endif
    .if ROWS % 4
    .align 8
some_rows:
    FOUR_ROWS (ROWS%4), 0
    add $m4, $m4, 24
    bri next_rows
    .endif
.align 8
matrix_done:
.endif

.if PACK_MATRICES > 1
    .set GONE_IN, 0 // what the matrix has moved $m3 and $m2 by
    .set GONE_OUT, 0
    .if PACK_WAY == QUADS_WAY
        .if PARTS > 1
    .set GONE_IN, PACK_PHYSICAL_ROWS * PITCH
    .set GONE_OUT, PACK_PHYSICAL_ROWS / 16 * PANEL_BYTES
        .endif
    .endif
    CONSTANT $m5, (ROWS*PITCH-GONE_IN)
    CONSTANT $m6, (PACK_MATRIX_BYTES-GONE_OUT)
    add $m3, $m3, $m5
    add $m2, $m2, $m6
    brnzdec $m10, matrix
.endif
    exitz $mzero
