/* gemm.S - C[rows, columns] (+)= L[rows, inner] W[inner, columns] on the matrix unit.
 *
 * L: panels of 32-byte rows (16 halves or 32 F8 codes of the inner dimension). W: a stream of
 * 512-byte micro-panels, column group by column group, inner panel by inner panel. C: halves, panels of 16
 * columns, 32-byte rows. The supervisor loads one micro-panel into the common weights and starts all
 * six workers on it, again and again; a worker runs its rows past the weights, four issues (32
 * bytes) a row.
 *
 * The one idea: a worker's rows of all micro-panels are one endless stream, and a launch is only a
 * pause in it. Registers, accumulators and addresses live on from launch to launch; the results of
 * a launch's last row come out during the first row of the next, and the partial sums of the next
 * launch's first row go in during the last row of this one. So there is no filling and draining
 * but at the ends of the call: a launch takes 4 bundles a row, one for rpt and one to exit.
 *
 * Bundle t = 4 row + phase of a launch does this (n: the worker's rows; word indices modulo 4 n, that
 * is, into the neighbouring launch):
 *
 *     issue   x word t, partial of word t + 4 (row after this one), gives result word t - 4
 *     load    x word t + 1                                    address 0 of the packed pair
 *     load    old C word t + 5                                address 1
 *     store   C word t - 6, from one of two registers         address 2
 *
 * Loads and stores of C are 11 words apart: odd, so that they fall into different memory elements of
 * the interleaved region (amp-kernels.md 2.3). A row's new value is in memory before its next turn
 * loads it when n >= 3. With fewer rows than 7 a worker has one row, whose sums stay in the unit
 * (ROW below).
 *
 * Defines: GEMM_F8, GEMM_ROWS, GEMM_GROUPS (inner / 16 or / 32), GEMM_COLUMN_GROUPS (columns / 16),
 * GEMM_ACCUMULATE, GEMM_INTERLEAVED, GEMM_PACKED, GEMM_SCALE, GEMM_LEFT_PITCH (0: L in panels; else row-major, bytes from
 * row to row). */
.include "launch.inc"

.set ROWS, GEMM_ROWS
.set IG, GEMM_GROUPS
.set CG, GEMM_COLUMN_GROUPS
.set PANEL_BYTES, ROWS * 32

/* How rows are dealt. N: rows of the longest worker; LONG: how many workers have N rows, the others
 * have N - 1; 6 with SPREAD: all have N, starting at most at row ROWS - N: two workers then share
 * rows and compute the same. Sharing is safe when the shared row has the same index in both or one
 * or two apart (the load of one is before the store of the other), which holds for N = 3.
 * Packed: a worker stays within a block of 16 rows. */
.set PER_BLOCK, 0
.if GEMM_PACKED
    .set BLOCKS, ROWS / 16
    .set SPREAD, (BLOCKS == 1) & 1
    .set LONG, 6
    .if BLOCKS == 1
        .set N, 3
    .elseif BLOCKS == 2
        .set PER_BLOCK, 3
        .set N, 6
        .set LONG, 1
    .elseif BLOCKS == 3
        .set PER_BLOCK, 2
        .set N, 8
    .else
        .set PER_BLOCK, 1
        .set N, 16
    .endif
.else
    .set SPREAD, (ROWS <= 18) & 1
    .set LONG, 6
    .if ROWS <= 6
        .set N, 1
    .elseif ROWS <= 18
        .set N, 3
    .else
        .set N, (ROWS + 5) / 6
        .if ROWS % 6
            .set LONG, ROWS % 6
        .endif
    .endif
.endif
.set SHORT, (LONG < 6) & 1 // workers with N - 1 rows exist

/* Steps of the packed addresses at the end of a panel, in words: one past the access that was made
 * last, which is word 4 n - 1 of the worker's rows. Fields of the stride register have ten bits. */
.set BACK, -(4 * N - 1)                                 // to the first row of the same panel
.set FORTH, 4 * (ROWS - N) + 1                          // to the first row of the next panel
.set HOME, -(4 * ROWS * (IG - 1) + 4 * N - 1)           // from the last panel to the first
.if GEMM_PACKED
    .set C_FORTH, 64 - (4 * N - 1)
.else
    .set C_FORTH, FORTH
.endif
.set FORTH_FITS, (GEMM_PACKED || FORTH + 4 * SHORT <= 511) & 1 // of C
.set X_FORTH_FITS, (FORTH + 4 * SHORT <= 511 && GEMM_LEFT_PITCH == 0) & 1
.set HOME_FITS, (GEMM_LEFT_PITCH == 0 && (IG == 1 || (GEMM_PACKED == 0 && HOME >= -512))) & 1

/* The fields of the stride register, and the selectors that name them; 0 steps by one word. */
.set ONE, 0
.set S_BACK, 1
.set FIELD1, BACK
.set FIELD1S, BACK + 4 // the same for a worker with one row less: every distance grows by four words
.if GEMM_LEFT_PITCH // rows of L are apart: the second field is C's, the third L's
    .set S_C_FORTH, 2 * FORTH_FITS
    .set FIELD2, C_FORTH * FORTH_FITS
    .set FIELD2S, (C_FORTH + 4) * FORTH_FITS
    .set S_FORTH, ONE
    .set S_HOME, ONE
    .set S_ROW, 3
    .set FIELD3, (GEMM_LEFT_PITCH - 24) / 8
    .set FIELD3S, FIELD3
.else
    .set S_ROW, ONE
    .set S_FORTH, 2 * X_FORTH_FITS
    .set FIELD2, FORTH * X_FORTH_FITS
    .set FIELD2S, (FORTH + 4) * X_FORTH_FITS
    .if GEMM_PACKED
        .set S_C_FORTH, 3
        .set FIELD3, C_FORTH
        .set FIELD3S, C_FORTH + 4
    .else
        .set S_C_FORTH, S_FORTH
        .set FIELD3, HOME * HOME_FITS
        .set FIELD3S, (HOME + 4) * HOME_FITS
    .endif
    .if IG == 1
        .set S_HOME, S_BACK
    .else
        .set S_HOME, 3 * HOME_FITS
    .endif
.endif
.if HOME_FITS == 0 && IG == 1
    .set S_HOME, ONE
.endif
.set STRIDES, (FIELD1 & 0x3ff) | (FIELD2 & 0x3ff) << 10 | (FIELD3 & 0x3ff) << 20
.set STRIDES_SHORT, (FIELD1S & 0x3ff) | (FIELD2S & 0x3ff) << 10 | (FIELD3S & 0x3ff) << 20

/* What x moves by where the steps do not reach, subtracted after the last word, in bytes. */
.if GEMM_LEFT_PITCH
    .set X_ROW_BYTES, GEMM_LEFT_PITCH
    .set X_BACK_BYTES, (N - 1 - SHORT) * GEMM_LEFT_PITCH
    .set X_HOME_BYTES, X_BACK_BYTES + 32 * IG
.else
    .set X_ROW_BYTES, 32
    .set X_BACK_BYTES, -32 * (ROWS - N + SHORT)
    .set X_HOME_BYTES, PANEL_BYTES * (IG - 1) + 32 * (N - SHORT)
.endif
.set UNROLL, 6 // rows up to which the loop is written out: saves the rpt

.set FRAME_C, 0
.set FRAME_L, 1

/* ---------------------------------------------------------------------------------------------
 * Supervisor. The panel loop has nothing between launch and sync but what fits into the 14 cycles
 * of the join. */

.macro LOAD_UNITS first
.if GEMM_INTERLEAVED
    ld128putcs \first
    ld128putcs \first + 2
    ld128putcs \first + 4
    ld128putcs \first + 6
.else
    ld64putcs \first
    ld64putcs \first + 1
    ld64putcs \first + 2
    ld64putcs \first + 3
    ld64putcs \first + 4
    ld64putcs \first + 5
    ld64putcs \first + 6
    ld64putcs \first + 7
.endif
.endm

/* One micro-panel: channels 4 i and 4 i + 1 go to set 0, 4 i + 2 and 4 i + 3 to set 1, so that results
 * leave in the order of the columns. */
.macro LOAD_WEIGHTS
    LOAD_UNITS 0
    LOAD_UNITS 32
    LOAD_UNITS 8
    LOAD_UNITS 40
    LOAD_UNITS 16
    LOAD_UNITS 48
    LOAD_UNITS 24
    LOAD_UNITS 56
.endm

.section .text.ipu_gemm, "ax"
.globl ipu_gemm
.type ipu_gemm, @function
.supervisor
.align 8
ipu_gemm:
    put $CCCSLOAD, $m4
    add $m1, $m11, -8 // frame below the stack: nothing is called from here
.if GEMM_F8
    setzi $m5, 3 // F143 times F143
    setzi $m6, GEMM_SCALE & 0x3f
.endif
.if IG == 1
    .set TURNS, CG - 1 // launches of the loop
.else
    .set TURNS, IG - 1
.endif
    setzi $m0, first
.if TURNS > 1
    setzi $m9, middle
    setzi $m7, TURNS - 1
.endif
.if IG > 1 && CG > 1
    setzi $m8, CG - 1
    setzi $m4, last_of_group
.endif
.if GEMM_F8
    put $FP_INFMT, $m5
    put $FP_ISCL, $m6
.endif
    st32 $m2, $m1, $mzero, FRAME_C
    st32 $m3, $m1, $mzero, FRAME_L
.if TURNS > 0
    setzi $m6, final
    .if IG > 1 && CG > 1
    setzi $m3, first_of_group
    .endif
next_panel:
    sync 2
    LOAD_WEIGHTS
    runall $m0, $m1, 0
    .if TURNS > 1
    mov $m0, $m9
    brnzdec $m7, next_panel
    .endif
    .if IG > 1 && CG > 1
    brz $m8, last_panel
    sync 2
    LOAD_WEIGHTS
    runall $m4, $m1, 0
    mov $m0, $m3
        .if TURNS > 1
    setzi $m7, TURNS - 1
        .endif
    add $m8, $m8, -1
    bri next_panel
last_panel:
    .endif
    mov $m0, $m6
    sync 2
.endif
    LOAD_WEIGHTS
    runall $m0, $m1, 0
    sync 2
    br $m10
.size ipu_gemm, . - ipu_gemm

/* ---------------------------------------------------------------------------------------------
 * Workers. Retained: $m0:1 packed addresses, $m2 strides, $m3 rpt count; bytes to move by where the
 * strides do not reach: $m4 C to the next group, $m11 x to the next panel, $m5 x to the first; $a0:1 x, $a2:3 old C, $a4:7 results. */
.worker
.macro AMP result, x, partial, phase
.if GEMM_F8
    f8v8hihov4amp \result, \x, \partial, \phase
.else
    f16v4hihov4amp \result, \x, \partial, \phase
.endif
.endm

.set P0, TAMP_F16V4_E4_P0
.set P1, TAMP_F16V4_E4_P1
.set P2, TAMP_F16V4_E4_P2
.set P3, TAMP_F16V4_E4_P3

.if N == 1
/* ROW: one row a worker; its sums stay in the unit. Phase 0 exchanges accumulators and chain, so the
 * even and the odd panels of a column group make two sums. While one panel is multiplied the results of the
 * one before come out, and go back in, one issue later, for the one after: word j comes out at issue
 * j and enters at issue j + 1; a fifth issue, of zeros, takes the last word and pushes out what
 * entered first. In the last panel the other sum comes out, then four issues of zeros bring this one, and the
 * two are added.
 *
 * $m0: x, stepped; $m1: C of the column group; $m2: byte offset of the row, for both (with
 * a pitch $m4 for x); $m3: HOME_STEP when it is no immediate. */
.set C_FORTH_STEP, 1 + 4 * (ROWS - 1)
.if GEMM_LEFT_PITCH
    .set FORTH_STEP, 1
    .set HOME_STEP, -(4 * IG - 1)
.else
    .set FORTH_STEP, C_FORTH_STEP
    .set HOME_STEP, -(4 * ROWS * (IG - 1) + 3)
.endif
.set FAR, (CG > 1 && HOME_STEP < -128) & 1
.set LATE, (IG > 2 && CG == 1 && GEMM_ACCUMULATE == 0) & 1 // there is a free slot for $m1 in `middle`

.macro LOAD_X step
.if GEMM_LEFT_PITCH
    ld64step $a0:1, $m4, $m0+=, \step
.else
    ld64step $a0:1, $m2, $m0+=, \step
.endif
.endm
.macro LOAD_LAST_X last
    .if \last == 0
    LOAD_X FORTH_STEP
    .elseif FAR
    LOAD_X $m3
    .elseif CG > 1
    LOAD_X HOME_STEP
    .else
    LOAD_X 1
    .endif
.endm

.align 8
first: /* row min(w, ROWS - 1) */
    get $m2, $WSR
    { min $m2, $m2, ROWS - 1 ; setzi $a0, 1 << CSR_W_FP_CLR__ZAACC__SHIFT }
.if GEMM_LEFT_PITCH
    mul $m4, $m2, GEMM_LEFT_PITCH
.endif
    { shl $m2, $m2, 5 ; uput $FP_CLR, $a0 }
    ld32 $m0, $mvertex_base, $mzero, FRAME_L
.if LATE == 0
    ld32 $m1, $mvertex_base, $mzero, FRAME_C
.endif
.if FAR
    CONSTANT $m3, HOME_STEP
.endif
    LOAD_X 1
first_of_group:
.if IG == 1
middle:
final:
.endif
.if GEMM_ACCUMULATE
    ld64 $a2:3, $m2, $m1, 0
    { ld64 $a2:3, $m2, $m1, 1 ; AMP $a4:5, $azeros, $a2:3, P0 }
    { ld64 $a2:3, $m2, $m1, 2 ; AMP $a4:5, $azeros, $a2:3, P1 }
    { ld64 $a2:3, $m2, $m1, 3 ; AMP $a4:5, $azeros, $a2:3, P2 }
    { nop ; AMP $a4:5, $azeros, $a2:3, P3 }
.endif

.if IG == 1
    { LOAD_X 1 ; AMP $a4:5, $a0:1, $azeros, P0 }
    { LOAD_X 1 ; AMP $a4:5, $a0:1, $azeros, P1 }
    { LOAD_LAST_X 1 ; AMP $a4:5, $a0:1, $azeros, P2 }
    { nop ; AMP $a4:5, $a0:1, $azeros, P3 }
    .if CG > 1
    { LOAD_X 1 ; AMP $a4:5, $azeros, $azeros, P0 }
    .else
    { nop ; AMP $a4:5, $azeros, $azeros, P0 }
    .endif
    { st64step $a4:5, $m2, $m1+=, 1 ; AMP $a4:5, $azeros, $azeros, P1 }
    { st64step $a4:5, $m2, $m1+=, 1 ; AMP $a4:5, $azeros, $azeros, P2 }
    { st64step $a4:5, $m2, $m1+=, 1 ; AMP $a4:5, $azeros, $azeros, P3 }
    st64step $a4:5, $m2, $m1+=, C_FORTH_STEP
    exitz $mzero

.else
    { LOAD_X 1 ; AMP $a4:5, $a0:1, $azeros, P0 } // zeros for the odd sum
    { LOAD_X 1 ; AMP $a4:5, $a0:1, $azeros, P1 }
    { LOAD_LAST_X 0 ; AMP $a4:5, $a0:1, $azeros, P2 }
    { LOAD_X 1 ; AMP $a4:5, $a0:1, $azeros, P3 }
    exitz $mzero
    .if IG > 2
.align 8
middle:
    { LOAD_X 1 ; AMP $a4:5, $a0:1, $azeros, P0 }
    { LOAD_X 1 ; AMP $a4:5, $a0:1, $a4:5, P1 }
    { LOAD_LAST_X 0 ; AMP $a4:5, $a0:1, $a4:5, P2 }
    { LOAD_X 1 ; AMP $a4:5, $a0:1, $a4:5, P3 }
        .if LATE
    { ld32 $m1, $mvertex_base, $mzero, FRAME_C ; AMP $a4:5, $azeros, $a4:5, P1 }
        .else
    { nop ; AMP $a4:5, $azeros, $a4:5, P1 }
        .endif
    exitz $mzero
    .endif
.align 8
last_of_group:
final: /* other sum o0..o3 to $a2:3, $a4:5, $a6:7, $a0:1; this one t0..t3 */
    { LOAD_X 1 ; AMP $a2:3, $a0:1, $azeros, P0 }
    { LOAD_X 1 ; AMP $a4:5, $a0:1, $azeros, P1 }
    { LOAD_LAST_X 1 ; AMP $a6:7, $a0:1, $azeros, P2 }
    { st64 $a2:3, $m2, $m1, 0 ; AMP $a0:1, $a0:1, $azeros, P3 } // o0 waits in C
    { nop ; AMP $a2:3, $azeros, $azeros, P0 }
    { st64 $a2:3, $m2, $m1, 3 ; AMP $a2:3, $azeros, $azeros, P1 } // and t0
    { nop ; f16v4add $a2:3, $a2:3, $a4:5 }
    { st64 $a2:3, $m2, $m1, 1 ; AMP $a4:5, $azeros, $azeros, P2 }
    { ld64 $a2:3, $m2, $m1, 0 ; f16v4add $a4:5, $a4:5, $a6:7 }
    { st64 $a4:5, $m2, $m1, 2 ; AMP $a6:7, $azeros, $azeros, P3 }
    { ld64 $a4:5, $m2, $m1, 3 ; f16v4add $a6:7, $a6:7, $a0:1 }
    { st64 $a6:7, $m2, $m1, 3 ; f16v4add $a2:3, $a2:3, $a4:5 }
    { st64step $a2:3, $m2, $m1+=, 4 * ROWS ; fnop }
    .if CG > 1
    LOAD_X 1
    .endif
    exitz $mzero
.endif

.else
/* STREAM: bundle t of a body, whose properties are
 *   ZERO    no old sums: partials are zero, but for those of the next launch
 *   PEND    results of the launch before come out first: 0 no, 1 of this column group, 2 of the one
 *           before
 *   C_NEXT  where loads of C go after the group's last row: 1 to its first, 2 to the next group's
 *   NEXT    the partials of the next launch are loaded
 *   X_NEXT  where loads of x go after the last row: 1 to the next panel, 2 to the first, 0 nowhere
 * The result registers alternate so that a store comes two bundles after its issue. */
.macro STREAM t, result, phase
    .set LOADS_X, (\t) < 4 * N - 1 || X_NEXT != 0
    .set LOADS_C, (ZERO == 0 && (\t) <= 4 * N - 6) || ((\t) >= 4 * N - 5 && NEXT)
    .set STORES, (\t) >= 6 || PEND != 0
    .set X_STEP, S_ROW * (((\t) % 4 == 2) & 1)
    .set C_STEP, ONE
    .set S_STEP, ONE
    .if (\t) == 4 * N - 2
        .if X_NEXT == 2
        .set X_STEP, S_HOME
        .else
        .set X_STEP, S_FORTH
        .endif
    .endif
    .if (\t) == 4 * N - 6
        .if C_NEXT == 1
        .set C_STEP, S_BACK
        .elseif C_NEXT == 2
        .set C_STEP, S_C_FORTH
        .endif
    .endif
    .if (\t) == 5
        .if PEND == 1
        .set S_STEP, S_BACK
        .elseif PEND == 2
        .set S_STEP, S_C_FORTH
        .endif
    .endif
    .if (ZERO == 0 && (\t) <= 4 * N - 5) || ((\t) >= 4 * N - 4 && NEXT)
    STREAM_ACCESS \t, \result, $a2:3, \phase
    .else
    STREAM_ACCESS \t, \result, $azeros, \phase
    .endif
.endm

.macro STREAM_ACCESS t, result, partial, phase
    .if LOADS_X && LOADS_C && STORES
    { ld2xst64pace $a0:3, \result, $m0:1+=, $m2, X_STEP | C_STEP << 2 | S_STEP << 4
      AMP \result, $a0:1, \partial, \phase }
    .elseif LOADS_X && STORES
    { ldst64pace $a0:1, \result, $m0:1+=, $m2, X_STEP | S_STEP << 2
      AMP \result, $a0:1, \partial, \phase }
    .elseif LOADS_X && LOADS_C
    { ld2x64pace $a0:1, $a2:3, $m0:1+=, $m2, X_STEP | C_STEP << 2
      AMP \result, $a0:1, \partial, \phase }
    .elseif LOADS_X // the first bundles of a call: by plain address, $m0:1 begins after them
    { ld64 $a0:1, $m6, $mzero, ((\t) + 1) / 4 * (X_ROW_BYTES / 8) + ((\t) + 1) % 4
      AMP \result, $a0:1, \partial, \phase }
    .else
    { st64pace \result, $m0:1+=, $m2, S_STEP
      AMP \result, $a0:1, \partial, \phase }
    .endif
.endm

/* A row in the middle: every step is one word, but for x at its end when rows of L are apart. */
.macro STEADY
    .if ZERO
    { ldst64pace $a0:1, $a4:5, $m0:1+=, $m2, S_ROW ; AMP $a4:5, $a0:1, $azeros, P2 }
    { ldst64pace $a0:1, $a6:7, $m0:1+=, $mzero, 0 ; AMP $a6:7, $a0:1, $azeros, P3 }
    { ldst64pace $a0:1, $a4:5, $m0:1+=, $mzero, 0 ; AMP $a4:5, $a0:1, $azeros, P0 }
    { ldst64pace $a0:1, $a6:7, $m0:1+=, $mzero, 0 ; AMP $a6:7, $a0:1, $azeros, P1 }
    .else
    { ld2xst64pace $a0:3, $a4:5, $m0:1+=, $m2, S_ROW ; AMP $a4:5, $a0:1, $a2:3, P2 }
    { ld2xst64pace $a0:3, $a6:7, $m0:1+=, $mzero, 0 ; AMP $a6:7, $a0:1, $a2:3, P3 }
    { ld2xst64pace $a0:3, $a4:5, $m0:1+=, $mzero, 0 ; AMP $a4:5, $a0:1, $a2:3, P0 }
    { ld2xst64pace $a0:3, $a6:7, $m0:1+=, $mzero, 0 ; AMP $a6:7, $a0:1, $a2:3, P1 }
    .endif
.endm

/* Stores move to the next column group, farther than a step goes: pack the addresses again. Loads of
 * C are at the new group's word 11; in a ZERO body at its word 0, or, with one panel a group, where
 * nothing is loaded, at the old group's. */
.macro MOVE_STORES
    shl $m8, $m0, 11
    shl $m9, $m1, 11
    shr $m8, $m8, 11
    shr $m9, $m9, 11
    .if ZERO == 0
    add $m10, $m9, -88
    tapack $m0:1, $m8, $m9, $m10
    .else
        .if IG == 1
    add $m9, $m9, PANEL_BYTES
        .else
    nop
        .endif
    tapack $m0:1, $m8, $m9, $m9
    .endif
.endm

.macro BODY zero, pend, c_next, next, x_next
    .set ZERO, \zero
    .set PEND, \pend
    .set C_NEXT, \c_next
    .set NEXT, \next
    .set X_NEXT, \x_next
    STREAM 0, $a4:5, P0
    STREAM 1, $a6:7, P1
    STREAM 2, $a4:5, P2
    STREAM 3, $a6:7, P3
    STREAM 4, $a4:5, P0
    STREAM 5, $a6:7, P1
    .if PEND == 2 && FORTH_FITS == 0
    MOVE_STORES
    .endif
    .if SHORT
    { rpt $m3, 3 ; fnop }
    STEADY
    .elseif N > UNROLL
    { rpt N - 3, 3 ; fnop }
    STEADY
    .else
        .rept N - 3
    STEADY
        .endr
    .endif
    STREAM (4*N-6), $a4:5, P2
    .if LOADS_C && C_NEXT == 2 && FORTH_FITS == 0
    { add $m1, $m1, $m4 ; fnop }
    .endif
    STREAM (4*N-5), $a6:7, P3
    STREAM (4*N-4), $a4:5, P0
    STREAM (4*N-3), $a6:7, P1
    STREAM (4*N-2), $a4:5, P2
    .if X_NEXT == 1 && X_FORTH_FITS == 0
    { sub $m0, $m0, $m11 ; fnop }
    .elseif X_NEXT == 2 && HOME_FITS == 0
    { sub $m0, $m0, $m5 ; fnop }
    .endif
    STREAM (4*N-1), $a6:7, P3
    .if X_NEXT == 0 // the end of the call: what is in the unit comes out
    { st64pace $a4:5, $m0:1+=, $mzero, 0 ; AMP $a4:5, $azeros, $azeros, P0 }
    { st64pace $a6:7, $m0:1+=, $mzero, 0 ; AMP $a6:7, $azeros, $azeros, P1 }
    { st64pace $a4:5, $m0:1+=, $mzero, 0 ; AMP $a4:5, $azeros, $azeros, P2 }
    { st64pace $a6:7, $m0:1+=, $mzero, 0 ; AMP $a6:7, $azeros, $azeros, P3 }
    st64pace $a4:5, $m0:1+=, $mzero, 0
    st64pace $a6:7, $m0:1+=, $mzero, 0
    .endif
    exitz $mzero
    .align 8
.endm

/* The first launch of a call: the worker's rows and addresses. $m7, $m8: byte offsets in L and C; $m10:
 * 1 when the worker has N rows. */
.align 8
first:
    get $m6, $WSR
.if PER_BLOCK == 0
    .set C_OFFSET, 7
    .if SHORT
    { min $m8, $m6, LONG ; setzi $a0, 1 << CSR_W_FP_CLR__ZAACC__SHIFT }
    { mul $m7, $m6, 32 * (N - 1) ; uput $FP_CLR, $a0 }
    shl $m8, $m8, 5
    add $m7, $m7, $m8
    cmpult $m10, $m6, LONG
    .else
    { mul $m7, $m6, 32 * N ; setzi $a0, 1 << CSR_W_FP_CLR__ZAACC__SHIFT }
        .if SPREAD
    { min $m7, $m7, 32 * (ROWS - N) ; uput $FP_CLR, $a0 }
        .else
    { nop ; uput $FP_CLR, $a0 }
        .endif
    .endif
.else
    .set C_OFFSET, 8
    .if PER_BLOCK == 1
    { min $m6, $m6, BLOCKS - 1 ; setzi $a0, 1 << CSR_W_FP_CLR__ZAACC__SHIFT }
    { shl $m7, $m6, 9 ; uput $FP_CLR, $a0 }
    mul $m8, $m7, CG
    .elseif PER_BLOCK == 2
    { shr $m8, $m6, 1 ; setzi $a0, 1 << CSR_W_FP_CLR__ZAACC__SHIFT }
    { and $m9, $m6, 1 ; uput $FP_CLR, $a0 }
    shl $m7, $m6, 8
    mul $m8, $m8, 512 * CG
    shl $m9, $m9, 8
    add $m8, $m8, $m9
    .else // worker 3 b + i of block b: 6, 5, 5 rows
    { cmpult $m8, $m6, 3 ; setzi $a0, 1 << CSR_W_FP_CLR__ZAACC__SHIFT }
    { sub $m8, 1, $m8 ; uput $FP_CLR, $a0 }
    mul $m9, $m8, -3
    add $m6, $m6, $m9
    min $m9, $m6, 1
    mul $m7, $m6, 5
    add $m9, $m9, $m7
    shl $m9, $m9, 5 // bytes of the rows before in the block
    shl $m7, $m8, 9
    mul $m8, $m7, CG
    add $m7, $m7, $m9
    add $m8, $m8, $m9
    cmpult $m10, $m6, LONG
    .endif
.endif
    ld32 $m6, $mvertex_base, $mzero, FRAME_L
    ld32 $m9, $mvertex_base, $mzero, FRAME_C
    CONSTANT $m2, STRIDES
.if SHORT
    brnz $m10, 1f
    CONSTANT $m2, STRIDES_SHORT
1:
    add $m3, $m10, N - 4
.endif
.if C_OFFSET == 7
    add $m9, $m9, $m7
.else
    add $m9, $m9, $m8
.endif
.if GEMM_LEFT_PITCH
    shr $m7, $m7, 5
    mul $m7, $m7, GEMM_LEFT_PITCH
.endif
    add $m6, $m6, $m7
.if FORTH_FITS == 0 && CG > 1
    .if SHORT
    mul $m4, $m10, -32
    add $m4, $m4, 32 * (ROWS - N + 1)
    .else
    setzi $m4, 32 * (ROWS - N)
    .endif
.endif
.set NEEDS_BACK, (X_FORTH_FITS == 0 && IG > 1) & 1
.set NEEDS_HOME, (HOME_FITS == 0 && CG > 1) & 1
.if SHORT && (NEEDS_BACK || NEEDS_HOME)
    mul $m7, $m10, X_ROW_BYTES
.endif
.if NEEDS_BACK
    CONSTANT $m11, X_BACK_BYTES
    .if SHORT
    add $m11, $m11, $m7
    .endif
.endif
.if NEEDS_HOME
    CONSTANT $m5, X_HOME_BYTES
    .if SHORT
    add $m5, $m5, $m7
    .endif
.endif
.if GEMM_ACCUMULATE
    add $m7, $m6, 8  // x word 1
    add $m8, $m9, 40 // C word 5
    ld64 $a2:3, $m9, $mzero, 0
    { ld64 $a2:3, $m9, $mzero, 1 ; AMP $a4:5, $azeros, $a2:3, P0 }
    { ld64 $a2:3, $m9, $mzero, 2 ; AMP $a4:5, $azeros, $a2:3, P1 }
    { ld64 $a2:3, $m9, $mzero, 3 ; AMP $a4:5, $azeros, $a2:3, P2 }
    { ld64 $a2:3, $m9, $mzero, 4 ; AMP $a4:5, $azeros, $a2:3, P3 }
    ld64 $a0:1, $m6, $mzero, 0
    tapack $m0:1, $m7, $m8, $m9
.else
    add $m7, $m6, X_ROW_BYTES + 24 // x word 7
    ld64 $a0:1, $m6, $mzero, 0
    tapack $m0:1, $m7, $m9, $m9
.endif
.align 8

.set FRESH, 1 - GEMM_ACCUMULATE
.if IG > 1
    BODY FRESH, 0, 1, 1, 1
    .if CG > 1
first_of_group:
    BODY FRESH, 2, 1, 1, 1
    .endif
    .if IG > 2
middle:
    BODY 0, 1, 1, 1, 1
    .endif
    .if CG > 1
last_of_group:
    BODY 0, 1, 2, GEMM_ACCUMULATE, 2
    .endif
final:
    BODY 0, 1, 0, 0, 0
.elseif CG == 1
    BODY FRESH, 0, 0, 0, 0
.else
    BODY FRESH, 0, 2, GEMM_ACCUMULATE, 2
    .if CG > 2
middle:
    BODY FRESH, 2, 2, GEMM_ACCUMULATE, 2
    .endif
final:
    BODY FRESH, 2, 0, 0, 0
.endif
.endif
