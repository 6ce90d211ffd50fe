/* add.S - out = a + b, or (a + b) + c (ADD_SECOND), in F16. a and c: [ADD_PANELS][ADD_ROWS][ADD_COLUMNS];
 * b has [ADD_PANELS][ADD_COLUMNS] values and stands for every row.
 *
 * The unit is a quad: four halves, one 64-bit word. Workers take quads in turn (w, w + 6, ...). Three
 * loops, chosen by shape:
 *   dense  ADD_ROWS = 1: three (four) memory accesses a quad, as many bundles; a sum is stored one quad
 *          later
 *   panel  columns = 16 (Left order): a worker's quads meet only two of a panel's four bias quads,
 *          in turn, so both stay in registers: 2 (3) bundles a quad
 *   rows   else: the dense loop once a row
 * With ADD_APART the operands of the dense loop lie in different memory elements and one instruction loads
 * two quads and stores a third: a bundle a quad. */
.include "launch.inc"

.set PANELS, ADD_PANELS
.set ROWS, ADD_ROWS
.set COLUMNS, ADD_COLUMNS
.include "broadcast.inc"

.section .text.ipu_add, "ax"
.globl ipu_add
.supervisor
.align 8
ipu_add:
    LAUNCH_ONCE 3 + ADD_SECOND, 4, worker

/* Instructions outside of bundles come in even numbers before a repeat, whose body is aligned. */
.worker
.align 8
worker:
    get $m0, $WSR
    ld32 $m2, $mvertex_base, $mzero, 0
    ld32 $m3, $mvertex_base, $mzero, 1
    ld32 $m4, $mvertex_base, $mzero, 2
.if ADD_SECOND
    { ld32 $m11, $mvertex_base, $mzero, 3 ; fnop } // c
.endif
.if REST
    cmpult $m1, $m0, REST
    .if ADD_APART
    add $m1, $m1, SHARE - 2 // quads after the second
    .elseif SHARE
    add $m1, $m1, SHARE - 1 // quads after the first
    .else
    brz $m1, done
    .endif
.endif
    shl $m0, $m0, 3 // $m0, $m5: offsets of the next load and store

/* The worker's quads of one row, or of everything. */
.set LOOPS, QUADS > 6
.macro REPEAT_QUADS bundles
.if REST
    { rpt $m1, \bundles - 1 ; f16v4add $a4:5, $a0:1, $a2:3 }
.else
    { rpt SHARE - 1, \bundles - 1 ; f16v4add $a4:5, $a0:1, $a2:3 }
.endif
.endm
.if ADD_APART
/* Each quad is loaded in one bundle, added in the next and stored in the one after that. */
.macro ADD_ROW
    add $m9, $m3, $m0
    add $m10, $m4, $m0
    add $m5, $m2, $m0
    tapack $m10:11, $m9, $m10, $m5
    setzi $m0, 6
    { ld2x64pace $a0:1, $a2:3, $m10:11+=, $m0, 5 ; fnop }
    { ld2x64pace $a0:1, $a2:3, $m10:11+=, $m0, 5 ; f16v4add $a4:5, $a0:1, $a2:3 }
.if REST
    { rpt $m1, 0 ; fnop }
.else
    { rpt SHARE - 2, 0 ; fnop }
.endif
    { ld2xst64pace $a0:3, $a4:5, $m10:11+=, $m0, 21 ; f16v4add $a4:5, $a0:1, $a2:3 }
    { st64pace $a4:5, $m10:11+=, $m0, 1 ; f16v4add $a4:5, $a0:1, $a2:3 }
    { st64pace $a4:5, $m10:11+=, $m0, 1 ; fnop }
.endm
.else
.macro ADD_ROW
    ld64 $a0:1, $m3, $m0, 0
.if ADD_SECOND
    ld64 $a2:3, $m4, $m0, 0
    { ld64step $a6:7, $m11, $m0+=, 6 ; fnop }
    .if LOOPS
    REPEAT_QUADS 4
    { ld64 $a0:1, $m3, $m0, 0 ; f16v4add $a4:5, $a4:5, $a6:7 }
    { ld64 $a2:3, $m4, $m0, 0 ; fnop }
    { st64step $a4:5, $m2, $m5+=, 6 ; f16v4add $a4:5, $a0:1, $a2:3 }
    { ld64step $a6:7, $m11, $m0+=, 6 ; fnop }
    .else
    { nop ; f16v4add $a4:5, $a0:1, $a2:3 }
    .endif
    { nop ; f16v4add $a4:5, $a4:5, $a6:7 }
.else
    ld64step $a2:3, $m4, $m0+=, 6
    .if LOOPS
    REPEAT_QUADS 3
    { ld64 $a0:1, $m3, $m0, 0 ; fnop }
    { ld64step $a2:3, $m4, $m0+=, 6 ; fnop }
    { st64step $a4:5, $m2, $m5+=, 6 ; f16v4add $a4:5, $a0:1, $a2:3 }
    .else
    { nop ; f16v4add $a4:5, $a0:1, $a2:3 }
    .endif
.endif
    st64step $a4:5, $m2, $m5+=, 6
.endm
.endif

/* $a2:3 = \x + \y, which is the panel's last sum when the worker's quads are odd in number. */
.macro LAST_UNLESS_EVEN x, y
.if REST
    { brz $m1, last ; f16v4add $a2:3, \x, \y }
.elseif SHARE % 2 == 1
    { bri last ; f16v4add $a2:3, \x, \y }
.else
    { nop ; f16v4add $a2:3, \x, \y }
.endif
.endm

.if PANEL
    mov $m5, $m0
    add $m7, $m0, 16
    and $m6, $m0, 24 // the worker's two bias quads: w % 4 and (w + 2) % 4
    and $m7, $m7, 24
    .if REST
    shr $m8, $m1, 1 // pairs of quads before the last one or two
    and $m1, $m1, 1
    .endif
    .if PANELS > 1
    mov $m9, $m0
    setzi $m10, PANELS - 1
    .endif
panel:
    ld64 $a4:5, $m4, $m6, 0
    ld64 $a6:7, $m4, $m7, 0
    .if ADD_SECOND
    ld64 $a0:1, $m3, $m0, 0
        .if REST
    { rpt $m8, 5 ; fnop }
        .else
    { rpt (SHARE - 1) / 2, 5 ; fnop }
        .endif
    { ld64step $a2:3, $m11, $m0+=, 6 ; f16v4add $a0:1, $a0:1, $a4:5 }
    { ld64 $a0:1, $m3, $m0, 0 ; f16v4add $a2:3, $a0:1, $a2:3 }
    { st64step $a2:3, $m2, $m5+=, 6 ; fnop }
    { ld64step $a2:3, $m11, $m0+=, 6 ; f16v4add $a0:1, $a0:1, $a6:7 }
    { ld64 $a0:1, $m3, $m0, 0 ; f16v4add $a2:3, $a0:1, $a2:3 }
    { st64step $a2:3, $m2, $m5+=, 6 ; fnop }
    { ld64step $a2:3, $m11, $m0+=, 6 ; f16v4add $a0:1, $a0:1, $a4:5 }
    LAST_UNLESS_EVEN $a0:1, $a2:3
    ld64 $a0:1, $m3, $m0, 0
    st64step $a2:3, $m2, $m5+=, 6
    { ld64 $a2:3, $m11, $m0, 0 ; f16v4add $a0:1, $a0:1, $a6:7 }
    { nop ; f16v4add $a2:3, $a0:1, $a2:3 }
    .else
    ld64step $a0:1, $m3, $m0+=, 6
        .if REST
    { rpt $m8, 3 ; fnop }
        .else
    { rpt (SHARE - 1) / 2, 3 ; fnop }
        .endif
    { ld64step $a0:1, $m3, $m0+=, 6 ; f16v4add $a2:3, $a0:1, $a4:5 }
    { st64step $a2:3, $m2, $m5+=, 6 ; fnop }
    { ld64step $a0:1, $m3, $m0+=, 6 ; f16v4add $a2:3, $a0:1, $a6:7 }
    { st64step $a2:3, $m2, $m5+=, 6 ; fnop }
    LAST_UNLESS_EVEN $a0:1, $a4:5
    ld64step $a0:1, $m3, $m0+=, 6
    { st64step $a2:3, $m2, $m5+=, 6 ; f16v4add $a2:3, $a0:1, $a6:7 }
    .endif
last:
    st64step $a2:3, $m2, $m5+=, 6
    .if PANELS > 1
    add $m2, $m2, QUADS * 8
    add $m3, $m3, QUADS * 8
        .if ADD_SECOND
    add $m11, $m11, QUADS * 8
        .endif
    add $m4, $m4, 32
    mov $m0, $m9
    mov $m5, $m9
    brnzdec $m10, panel
    .endif

.elseif ROWS > 1
    mov $m6, $m0
    .if PANELS > 1
    setzi $m7, ROWS - 1
    setzi $m8, PANELS - 1
    .else
    { setzi $m7, ROWS - 1 ; fnop }
    .endif
row:
    mov $m0, $m6
    .if !ADD_APART
    mov $m5, $m6
    .endif
    ADD_ROW
    add $m2, $m2, COLUMNS * 2
    add $m3, $m3, COLUMNS * 2
    .if ADD_SECOND
    add $m11, $m11, COLUMNS * 2
    .endif
    brnzdec $m7, row
    .if PANELS > 1
    add $m4, $m4, COLUMNS * 2
    setzi $m7, ROWS - 1
    brnzdec $m8, row
    .endif

.else
    .if !ADD_APART
    mov $m5, $m0
    .endif
    ADD_ROW
.endif
done:
    exitz $mzero
