/* bias_gelu.S - out = gelu(x + b) in F16 (gelu.inc); b has [BIAS_GELU_PANELS][BIAS_GELU_COLUMNS] values
 * and stands for every row of x's [BIAS_GELU_PANELS][BIAS_GELU_ROWS][BIAS_GELU_COLUMNS].
 *
 * The unit is a quad: four halves, one 64-bit word. Workers take quads in turn (w, w + 6, ...). The
 * shapes differ in where a worker's next bias quad lies:
 *   dense  BIAS_GELU_ROWS = 1: beside x's quad
 *   panel  columns = 16 (Left order): a worker's quads meet two of a panel's four bias quads in turn
 *   rows   else: the dense loop once a row */
.include "launch.inc"
.set GELU_MATRIX, 0 // panels and rows are short
.include "gelu.inc"

.set PANELS, BIAS_GELU_PANELS
.set ROWS, BIAS_GELU_ROWS
.set COLUMNS, BIAS_GELU_COLUMNS
.include "broadcast.inc"

.section .text.ipu_bias_gelu, "ax"
.globl ipu_bias_gelu
.supervisor
.align 8
ipu_bias_gelu:
    LAUNCH_ONCE 3, 4, worker

.worker
.align 8
worker:
    { get $m0, $WSR ; GELU_SET_1 }
    { ld32 $m2, $mvertex_base, $mzero, 0 ; GELU_SET_2 }
    { ld32 $m3, $mvertex_base, $mzero, 1 ; GELU_SET_3 }
    { ld32 $m4, $mvertex_base, $mzero, 2 ; fnop }
.if REST
    { cmpult $m1, $m0, REST ; fnop }
    .if SHARE > 1
    { add $m1, $m1, SHARE - 2 ; fnop } // turns of the loop
    .elseif SHARE == 0
    { brz $m1, done ; fnop }
    .endif
.endif
    { shl $m0, $m0, 3 ; fnop } // $m0, $m5: offsets of the next load and store

/* The worker's quads of one row, panel or of everything: nine slots each (gelu.inc, the sigmoid way;
 * the addition is one more). x + b goes to the result's place until its turn comes. $m6: offset of
 * the first bias quad. */
.macro NEXT_BIAS
.if PANEL
    xor $m6, $m6, $m7
.else
    add $m6, $m6, 48
.endif
.endm
/* x + b of the next quad in $a0:1 and in the result's place, its z^3 in $a4:5. */
.macro NEXT_SUM
    { ld64 $a0:1, $m3, $m0, 0 ; fnop }
    { ld64 $a4:5, $m4, $m6, 0 ; fnop }
    { NEXT_BIAS ; f16v4add $a0:1, $a0:1, $a4:5 }
    { st64step $a0:1, $m2, $m0+=, 6 ; f16v4mul $a4:5, $a0:1, $a0:1 }
    { nop ; f16v4mul $a4:5, $a4:5, $a0:1 }
.endm
.set TURNS, SHARE > 1 || (SHARE == 1 && REST)
.macro BIAS_GELU_QUADS
    NEXT_SUM
    { nop ; f16v4mix $azeros, $a4:5, $a0:1 }
.if SHARE <= 1
    .if TURNS
    { brz $m1, 1f ; f16v4gacc $a6:7 }
    .else
    { nop ; f16v4gacc $a6:7 }
    .endif
.endif
.if TURNS
    NEXT_SUM
    { nop ; f16v4mix $a6:7, $a4:5, $a0:1 }
    .if SHARE > 1 && REST
    { rpt $m1, 6 ; fnop }
    .elseif SHARE > 2
    { rpt SHARE - 2, 6 ; fnop }
    .endif
    .if SHARE > 2 || (SHARE == 2 && REST)
    { ld64 $a2:3, $m2, $m5, 0 ; f16v2sigm $a6, $a6 }
    { ld64 $a0:1, $m3, $m0, 0 ; f16v2sigm $a7, $a7 }
    { ld64 $a4:5, $m4, $m6, 0 ; f16v4mul $a6:7, $a6:7, $a2:3 }
    { st64step $a6:7, $m2, $m5+=, 6 ; f16v4add $a0:1, $a0:1, $a4:5 }
    { st64step $a0:1, $m2, $m0+=, 6 ; f16v4mul $a4:5, $a0:1, $a0:1 }
    { NEXT_BIAS ; f16v4mul $a4:5, $a4:5, $a0:1 }
    { nop ; f16v4mix $a6:7, $a4:5, $a0:1 }
    .endif
    { ld64 $a2:3, $m2, $m5, 0 ; f16v2sigm $a6, $a6 }
    { nop ; f16v2sigm $a7, $a7 }
    { nop ; f16v4mul $a6:7, $a6:7, $a2:3 }
    { st64step $a6:7, $m2, $m5+=, 6 ; f16v4gacc $a6:7 }
.endif
1:
    { ld64 $a2:3, $m2, $m5, 0 ; f16v2sigm $a6, $a6 }
    { nop ; f16v2sigm $a7, $a7 }
    { nop ; f16v4mul $a6:7, $a6:7, $a2:3 }
    { st64step $a6:7, $m2, $m5+=, 6 ; fnop }
.endm

.if ROWS == 1
    { mov $m5, $m0 ; fnop }
    { mov $m6, $m0 ; fnop }
    BIAS_GELU_QUADS

.elseif PANEL
    { mov $m5, $m0 ; fnop }
    { and $m9, $m0, 24 ; fnop } // the first bias quad: w % 4; the next: (w + 2) % 4
    { setzi $m7, 16 ; fnop }
    .if PANELS > 1
    { mov $m8, $m0 ; fnop }
    { setzi $m10, PANELS - 1 ; fnop }
    .endif
panel:
    { mov $m6, $m9 ; fnop }
    BIAS_GELU_QUADS
    .if PANELS > 1
    { add $m2, $m2, QUADS * 8 ; fnop }
    { add $m3, $m3, QUADS * 8 ; fnop }
    { add $m4, $m4, 32 ; fnop }
    { mov $m0, $m8 ; fnop }
    { mov $m5, $m8 ; fnop }
    { brnzdec $m10, panel ; fnop }
    .endif

.else
    { mov $m9, $m0 ; fnop }
    .if PANELS > 1
    { setzi $m7, ROWS - 1 ; fnop }
    { setzi $m8, PANELS - 1 ; fnop }
    .else
    { setzi $m7, ROWS - 1 ; fnop }
    .endif
row:
    { mov $m0, $m9 ; fnop }
    { mov $m5, $m9 ; fnop }
    { mov $m6, $m9 ; fnop }
    BIAS_GELU_QUADS
    { add $m2, $m2, COLUMNS * 2 ; fnop }
    { add $m3, $m3, COLUMNS * 2 ; fnop }
    { brnzdec $m7, row ; fnop }
    .if PANELS > 1
    { add $m4, $m4, COLUMNS * 2 ; fnop }
    { setzi $m7, ROWS - 1 ; fnop }
    { brnzdec $m8, row ; fnop }
    .endif
.endif
done:
    exitz $mzero
