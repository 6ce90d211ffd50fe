/* bias_gelu.S - out = gelu(x + b) in F16 (gelu.inc); b has [BIAS_GELU_PANELS][BIAS_GELU_COLUMNS] values
 * and stands for every row of x's [BIAS_GELU_PANELS][BIAS_GELU_ROWS][BIAS_GELU_COLUMNS].
 *
 * The unit is a quad: four halves, one 64-bit word. Workers take quads in turn (w, w + 6, ...). The
 * shapes differ in where a worker's next bias quad lies:
 *   dense  BIAS_GELU_ROWS = 1: beside x's quad
 *   panel  columns = 16 (Left order): a worker's quads meet two of a panel's four bias quads in turn
 *   rows   else: the dense loop once a row */
.include "launch.inc"
.include "gelu.inc"

.set PANEL, BIAS_GELU_ROWS > 1 && BIAS_GELU_COLUMNS == 16
.if PANEL
    .set QUADS, BIAS_GELU_ROWS * 4 // dealt to the workers: of a panel
.elseif BIAS_GELU_ROWS > 1
    .set QUADS, BIAS_GELU_COLUMNS / 4 // of a row
.else
    .set QUADS, BIAS_GELU_PANELS * BIAS_GELU_COLUMNS / 4
.endif
.set SHARE, QUADS / 6 // every worker's; the first REST have one more
.set REST, QUADS % 6

.section .text.ipu_bias_gelu, "ax"
.globl ipu_bias_gelu
.supervisor
.align 8
ipu_bias_gelu:
    LAUNCH_ONCE 3, 4, worker

/* Instructions outside of bundles come in even numbers before a repeat, whose body is aligned. */
.worker
.align 8
worker:
    { get $m0, $WSR ; setzi $a0, TAS_GELU & 0xfffff }
    { ld32 $m2, $mvertex_base, $mzero, 0 ; or $a0, $a0, TAS_GELU & 0xfff00000 }
    { ld32 $m3, $mvertex_base, $mzero, 1 ; uput $TAS, $a0 }
    { ld32 $m4, $mvertex_base, $mzero, 2 ; fnop }
.if REST
    cmpult $m1, $m0, REST
    .if SHARE
    add $m1, $m1, SHARE - 1 // quads after the first
    .else
    brz $m1, done
    .endif
.endif
    shl $m0, $m0, 3 // $m0, $m5: offsets of the next load and store

/* The worker's quads of one row, panel or of everything. $m6: offset of the first bias quad. */
.macro LOAD_QUAD
    ld64 $a6:7, $m4, $m6, 0
    ld64step $a2:3, $m3, $m0+=, 6
.endm
.macro NEXT_BIAS
.if PANEL
    { xor $m6, $m6, $m7 ; f16v4gacc $a4:5 }
.else
    { add $m6, $m6, 48 ; f16v4gacc $a4:5 }
.endif
.endm
.macro BIAS_GELU_QUADS
    LOAD_QUAD
    { nop ; f16v4add $a0:1, $a2:3, $a6:7 }
    { nop ; f16v4mul $a4:5, $a0:1, $a0:1 }
.if SHARE > 1 || (SHARE == 1 && REST)
    .if PANEL
    xor $m6, $m6, $m7
    .else
    add $m6, $m6, 48
    .endif
    .if REST
    rpt $m1, 7
    .else
    rpt SHARE - 1, 7
    .endif
    { ld64step $a2:3, $m3, $m0+=, 6 ; f16v4mul $a4:5, $a4:5, $a0:1 }
    { ld64 $a6:7, $m4, $m6, 0 ; f16v4mix $azeros, $a4:5, $a0:1 }
    NEXT_BIAS
    { nop ; f16v2sigm $a4, $a4 }
    { nop ; f16v2sigm $a5, $a5 }
    { nop ; f16v4mul $a4:5, $a4:5, $a0:1 }
    { st64step $a4:5, $m2, $m5+=, 6 ; f16v4add $a0:1, $a2:3, $a6:7 }
    { nop ; f16v4mul $a4:5, $a0:1, $a0:1 }
.endif
    GELU_OF_SQUARE
    st64step $a4:5, $m2, $m5+=, 6
.endm

.if BIAS_GELU_ROWS == 1
    mov $m5, $m0
    { mov $m6, $m0 ; fnop }
    BIAS_GELU_QUADS

.elseif PANEL
    mov $m5, $m0
    and $m9, $m0, 24 // the first bias quad: w % 4; the next: (w + 2) % 4
    setzi $m7, 16
    .if BIAS_GELU_PANELS > 1
    mov $m8, $m0
    setzi $m10, BIAS_GELU_PANELS - 1
    .endif
panel:
    { mov $m6, $m9 ; fnop }
    BIAS_GELU_QUADS
    .if BIAS_GELU_PANELS > 1
    add $m2, $m2, QUADS * 8
    add $m3, $m3, QUADS * 8
    add $m4, $m4, 32
    mov $m0, $m8
    mov $m5, $m8
    brnzdec $m10, panel
    .endif

.else
    mov $m9, $m0
    .if BIAS_GELU_PANELS > 1
    setzi $m7, BIAS_GELU_ROWS - 1
    setzi $m8, BIAS_GELU_PANELS - 1
    .else
    { setzi $m7, BIAS_GELU_ROWS - 1 ; fnop }
    .endif
row:
    mov $m0, $m9
    mov $m5, $m9
    { mov $m6, $m9 ; fnop }
    BIAS_GELU_QUADS
    add $m2, $m2, BIAS_GELU_COLUMNS * 2
    add $m3, $m3, BIAS_GELU_COLUMNS * 2
    brnzdec $m7, row
    .if BIAS_GELU_PANELS > 1
    add $m4, $m4, BIAS_GELU_COLUMNS * 2
    setzi $m7, BIAS_GELU_ROWS - 1
    brnzdec $m8, row
    .endif
.endif
done:
    exitz $mzero
