/* unpack.S - an order of the matrix unit into row-major F16 matrices; padding is left out.
 *
 * UNPACK_WAY says how:
 *   ROWS_WAY    Left, the smallest piece is 16 values of a row in 32 bytes; rows are dealt to the workers
 *               in turn
 * and for Transposed Left, 16 values of a column in 32 bytes:
 *   PAIRS_WAY   rows are dealt in fours, four rows by two columns are transposed in registers
 *   STREAM_WAY  the same with 4 x 4 blocks in a stream (transpose.inc): rows of the result are aligned
 *               to 8 bytes, columns a multiple of 4
 *   PANELS_WAY  blocks of 16 x 16, one after another: a worker's fours of rows are one stream
 * Rows of the result are aligned to UNPACK_ALIGN (4 or 8) bytes; columns are even. */
.set ROWS_WAY, 0
.set PAIRS_WAY, 1
.set STREAM_WAY, 2
.set PANELS_WAY, 3
.include "launch.inc"
.include "transpose.inc"
.set ROWS, UNPACK_ROWS
.set COLUMNS, UNPACK_COLUMNS
.set PITCH, UNPACK_PITCH // bytes
.set WHOLE, COLUMNS / 16
.set WORDS, COLUMNS % 16 / 4
.set HALF_WORD, ((COLUMNS % 4) != 0) & 1

.section .text.ipu_unpack, "ax"
.globl ipu_unpack
.type ipu_unpack, @function
.supervisor
.align 8
ipu_unpack:
    LAUNCH_ONCE 2, 2, worker

.worker
.align 8
worker:
    get $m0, $WSR
    ld32 $m2, $mvertex_base, $mzero, 0
    ld32 $m3, $mvertex_base, $mzero, 1
.if UNPACK_MATRICES > 1
    setzi $m10, UNPACK_MATRICES - 1
.endif

.if UNPACK_WAY == ROWS_WAY
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
    DEAL ROWS, rows_done
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

.elseif UNPACK_WAY == PANELS_WAY
/* The four rows s, 4 + s... of all blocks lie evenly: for a worker from block to block, 4 words between
 * loads, 49 from a block's last store to the next block's first. Workers 0 to 3 have one s each in the
 * first LOW blocks, workers 4 and 5 two in the others. $m9, $m11: where a stream begins. */
.set BLOCKS, ROWS / 16
.set LOW, (2 * BLOCKS + 2) / 3
.set HIGH, BLOCKS - LOW
.set STEP_LOAD, 1
.set STEP_STORE, 1
.set STEP_BLOCK, 2
.set STEP_CHAIN, 3
    CONSTANT $m6, (4|(-11&0x3ff)<<10|49<<20)
    cmpult $m1, $m0, 4
    brz $m1, others
    shl $m9, $m0, 3
    shl $m11, $m0, 7
    add $m9, $m9, $m3
    add $m11, $m11, $m2
    setzi $m1, LOW - 1
    setzi $m10, 0
    .if HIGH
    bri stream
others:
    shl $m9, $m0, 4
    shl $m11, $m0, 8
    add $m9, $m9, $m3
    add $m11, $m11, $m2
    add $m9, $m9, 512 * LOW - 64 // 16 (w - 4)
    add $m11, $m11, 512 * LOW - 1024
    setzi $m1, HIGH - 1
    setzi $m10, 1
    .endif
    .align 8
stream:
    { mov $m7, $m9 ; fnop }
    { mov $m8, $m11 ; fnop }
    TRANSPOSE_FIRST 4
    { rpt $m1, 15 ; fnop }
    TRANSPOSE_BLOCK STEP_BLOCK
    TRANSPOSE_BLOCK STEP_BLOCK
    TRANSPOSE_BLOCK STEP_BLOCK
    TRANSPOSE_BLOCK STEP_CHAIN
    TRANSPOSE_BLOCK STEP_BLOCK
    TRANSPOSE_BLOCK STEP_BLOCK
    TRANSPOSE_LAST STEP_BLOCK
    { add $m9, $m9, 8 ; fnop }
    { add $m11, $m11, 128 ; fnop }
    { brnzdec $m10, stream ; fnop }
    .if HIGH == 0
others:
    .endif

.else
.macro PAIR have // $m5..$m8: places of the rows, $m9: byte offset in them; $m1: source

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
.macro PAIRS have
    .if \have > 3
    { rpt COLUMNS / 2, 6 ; fnop }
    .else
    { rpt COLUMNS / 2, 3 + \have ; fnop }
    .endif
    PAIR \have
.endm
.macro FOUR_ROWS have
    setzi $m9, 0
    .align 8
    PAIRS \have
    add $m4, $m4, 24
    bri next_rows
.endm
.set FULL_ROWS, ROWS / 4 * 4

.if UNPACK_WAY == STREAM_WAY // $m9: the first of four rows; $m7: source, $m8: place
.set WORD_PITCH, PITCH / 8
.set STEP_LOAD, 1
.set STEP_STORE, 2
.set STEP_BLOCK, 3
    .align 8
matrix:
    { setzi $m6, (4|WORD_PITCH<<10) & 0xfffff ; fnop }
    { setzi $m5, (1 - 3 * WORD_PITCH) & 0x3ff ; fnop }
    { shl $m5, $m5, 20 ; fnop }
    { or $m6, $m6, $m5 ; fnop }
    { shl $m9, $m0, 2 ; fnop }
next_rows:
    { cmpult $m11, $m9, ROWS ; fnop }
    { brz $m11, matrix_done ; fnop }
    { shr $m7, $m9, 4 ; fnop }
    { mul $m7, $m7, 32 * UNPACK_PHYSICAL_COLUMNS ; fnop }
    { and $m8, $m9, 15 ; fnop }
    { shl $m8, $m8, 1 ; fnop }
    { add $m7, $m7, $m8 ; fnop }
    { add $m7, $m7, $m3 ; fnop }
    { mul $m8, $m9, PITCH ; fnop }
    { add $m8, $m8, $m2 ; fnop }
    .if FULL_ROWS
        .if ROWS % 4
    { cmpult $m11, $m9, FULL_ROWS ; fnop }
    { brz $m11, some_rows ; fnop }
        .endif
    { add $m9, $m9, 24 ; fnop }
    TRANSPOSE_STREAM (COLUMNS/4), 4
    { bri next_rows ; fnop }
    .endif
some_rows: // the last
    .if ROWS % 4
    { mov $m1, $m7 ; fnop }
    { mov $m5, $m8 ; fnop }
    { add $m6, $m5, PITCH ; fnop }
    { add $m7, $m6, PITCH ; fnop }
    { setzi $m9, 0 ; fnop }
    PAIRS (ROWS%4)
    .endif
matrix_done:

.else // $m4: the first of four rows

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
.endif

.if UNPACK_MATRICES > 1
    CONSTANT $m5, (ROWS*PITCH)
    CONSTANT $m6, UNPACK_MATRIX_BYTES
    add $m2, $m2, $m5
    add $m3, $m3, $m6
    brnzdec $m10, matrix
.endif
    exitz $mzero
