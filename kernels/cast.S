/* cast.S - elements of one precision to another.
 *
 * CAST_KIND  0 F16 -> F32   1 F32 -> F16   2 F16 -> F8 (F143)   3 F8 -> F16
 * A unit is 16 bytes on the wide side and 8 on the narrow one. Linear casts deal CAST_UNITS units to
 * the workers in turn (w, w + 6, ...). With CAST_PACED the operands are in different elements and a
 * load and a store share a bundle.
 *
 * CAST_PANEL_ROWS > 0 (F16 -> F8): CAST_PANELS panels of the Left order, 16 halves (32 bytes) a row, become
 * panels of 32 codes (32 bytes): panel p fills half p % 2 of the rows of panel p / 2. Rows are dealt in turn. */
.set NARROW, (CAST_KIND == 1 || CAST_KIND == 2) & 1 // 16 bytes in, 8 out

.section .text.ipu_cast, "ax"
.globl ipu_cast
.type ipu_cast, @function
.supervisor
.align 8
ipu_cast:
    add $m1, $m11, -8 // frame below the stack: out, in
    setzi $m0, worker
.if CAST_KIND >= 2
    setzi $m4, 2 // the operand of conversions is F143
    setzi $m5, CAST_SCALE & 0x3f
.endif
    st32 $m2, $m1, $mzero, 0
    st32 $m3, $m1, $mzero, 1
.if CAST_KIND >= 2
    put $FP_INFMT, $m4
    put $FP_ISCL, $m5
.endif
    runall $m0, $m1, 0
    sync 2
    br $m10

.worker
.macro NARROWED // $a4:5 = $a0:3
.if CAST_KIND == 1
    f32v4tof16 $a4:5, $a0:3
.else
    f16v8tof8 $a4:5, $a0:3
.endif
.endm
.macro WIDENED pair, source
.if CAST_KIND == 0
    f16v2tof32 \pair, \source
.else
    f8v4tof16 \pair, \source
.endif
.endm

.align 8
worker:
    get $m0, $WSR
    ld32 $m2, $mvertex_base, $mzero, 0
    ld32 $m3, $mvertex_base, $mzero, 1
    shl $m4, $m0, 3

.if CAST_PANEL_ROWS
/* A worker's rows of a panel are units 0 and 1 of row w, w + 6, ... The first words of units come through
 * address 0 of the packed pair, the second words through $m8; results go through address 2. */
    .set ROWS, CAST_PANEL_ROWS
    .set SHARE, ROWS / 6
    .set REST, ROWS % 6
    .if REST
    cmpult $m1, $m0, REST // rows after the first
        .if SHARE
    add $m1, $m1, SHARE - 1
        .else
    brz $m1, done
    setzi $m1, 0
        .endif
    .else
    setzi $m1, SHARE - 1
    .endif
    shl $m4, $m4, 2 // the first row: 32 w bytes
    add $m2, $m2, $m4
    add $m3, $m3, $m4
    setzi $m7, CAST_PANELS - 1
    setzi $m6, 2 | 22 << 10 // within a row, to the next row of loads
    or $m6, $m6, 23 << 20   // and of stores
    setzi $m9, 16           // to the second half of the output's rows, and back to the next panel
    .align 8
panel:
    ld64 $a0:1, $m3, $mzero, 0
    ld64 $a2:3, $m3, $mzero, 1
    add $m0, $m3, 192
    add $m8, $m3, 200
    tapack $m4:5, $m0, $mzero, $m2
    add $m2, $m2, $m9 // the next panel's
    { ld64 $a0:1, $m3, $mzero, 2 ; NARROWED }
    { ld64 $a2:3, $m3, $mzero, 3 ; fnop }
    { rpt $m1, 3 ; fnop }
    { ldst64pace $a0:1, $a4:5, $m4:5+=, $m6, 1 ; NARROWED }
    { ld64step $a2:3, $mzero, $m8+=, 2 ; fnop }
    { ldst64pace $a0:1, $a4:5, $m4:5+=, $m6, 2 | 3 << 2 ; NARROWED }
    { ld64step $a2:3, $mzero, $m8+=, 22 ; fnop }
    { st64pace $a4:5, $m4:5+=, $mzero, 0 ; NARROWED }
    st64pace $a4:5, $m4:5+=, $mzero, 0
    add $m3, $m3, ROWS * 32
    sub $m9, ROWS * 32, $m9
    brnzdec $m7, panel
    .if CAST_PANELS % 2 // the last rows' second half
    add $m1, $m1, 1
    setzi $m6, 23
    .align 8
    { rpt $m1, 1 ; fnop }
    { st64step $azeros, $mzero, $m2+=, 1 ; fnop }
    { st64step $azeros, $mzero, $m2+=, $m6 ; fnop }
    .endif
.endif

.if CAST_PANEL_ROWS == 0
    .set SHARE, CAST_UNITS / 6
    .set REST, CAST_UNITS % 6
    .set AHEAD, 1 + CAST_PACED * NARROW // units that the loop does not do
    .if REST
    cmpult $m1, $m0, REST
        .if SHARE
    add $m1, $m1, SHARE - AHEAD
        .else
    brz $m1, done
    setzi $m1, 0
        .endif
    .else
    setzi $m1, SHARE - AHEAD
    .endif
.if NARROW
    add $m2, $m2, $m4
    shl $m4, $m4, 1
    add $m3, $m3, $m4
    .if CAST_PACED
    ld64 $a0:1, $m3, $mzero, 0
    ld64 $a2:3, $m3, $mzero, 1
    add $m5, $m3, 2 * 96      // first words of the unit after next
    add $m7, $m3, 2 * 96 + 8  // second words
    setzi $m6, 12 | 6 << 10
    tapack $m4:5, $m5, $mzero, $m2
    .align 8
    { ld64 $a0:1, $m3, $mzero, 12 ; NARROWED }
    { ld64 $a2:3, $m3, $mzero, 13 ; fnop }
    { rpt $m1, 1 ; fnop }
    { ldst64pace $a0:1, $a4:5, $m4:5+=, $m6, 1 | 2 << 2 ; NARROWED }
    { ld64step $a2:3, $mzero, $m7+=, 12 ; fnop }
    { st64pace $a4:5, $m4:5+=, $m6, 2 ; NARROWED }
    st64pace $a4:5, $m4:5+=, $m6, 2
    .else
    ld64step $a0:1, $mzero, $m3+=, 1
    ld64step $a2:3, $mzero, $m3+=, 11
    .align 8
    { rpt $m1, 2 ; fnop }
    { ld64step $a0:1, $mzero, $m3+=, 1 ; NARROWED }
    { ld64step $a2:3, $mzero, $m3+=, 11 ; fnop }
    { st64step $a4:5, $mzero, $m2+=, 6 ; fnop }
    { nop ; NARROWED }
    st64step $a4:5, $mzero, $m2+=, 6
    .endif
.else
    add $m3, $m3, $m4
    shl $m4, $m4, 1
    add $m2, $m2, $m4
    ld64step $a0:1, $mzero, $m3+=, 6
    .if CAST_PACED
    add $m7, $m2, 8 // second words
    setzi $m6, 6 | 12 << 10
    tapack $m4:5, $m3, $mzero, $m2
    .align 8
    { rpt $m1, 1 ; WIDENED $a4:5, $a0 }
    { ldst64pace $a0:1, $a4:5, $m4:5+=, $m6, 1 | 2 << 2 ; WIDENED $a6:7, $a1 }
    { st64step $a6:7, $mzero, $m7+=, 12 ; WIDENED $a4:5, $a0 }
    { st64pace $a4:5, $m4:5+=, $m6, 2 ; WIDENED $a6:7, $a1 }
    st64 $a6:7, $m7, $mzero, 0
    .else
    .align 8
    { rpt $m1, 2 ; WIDENED $a4:5, $a0 }
    { st64step $a4:5, $mzero, $m2+=, 1 ; WIDENED $a6:7, $a1 }
    { ld64step $a0:1, $mzero, $m3+=, 6 ; fnop }
    { st64step $a6:7, $mzero, $m2+=, 11 ; WIDENED $a4:5, $a0 }
    { st64step $a4:5, $mzero, $m2+=, 1 ; WIDENED $a6:7, $a1 }
    st64 $a6:7, $m2, $mzero, 0
    .endif
.endif
.endif
done:
    exitz $mzero
