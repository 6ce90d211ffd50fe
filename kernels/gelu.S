/* gelu.S - out = gelu(in), elementwise in F16 (gelu.inc). The unit is a quad: four halves, one 64-bit
 * word. Workers take quads in turn (w, w + 6, ...). */
.include "launch.inc"
.include "gelu.inc"

.set QUADS, GELU_ELEMENTS / 4
.set REST, QUADS % 6 // the first workers have one more
.set GELU_STEP, 6
.if QUADS < 6
    .set GELU_LEAST, 1
    .set GELU_MIXED, 0
.else
    .set GELU_LEAST, QUADS / 6
    .set GELU_MIXED, (REST > 0) & 1
.endif

.section .text.ipu_gelu, "ax"
.globl ipu_gelu
.supervisor
.align 8
ipu_gelu:
    LAUNCH_GELU 2, worker

.worker
.align 8
worker:
    { get $m0, $WSR ; GELU_SET_1 }
    { ld32 $m2, $mvertex_base, $mzero, 0 ; GELU_SET_2 }
    { ld32 $m3, $mvertex_base, $mzero, 1 ; GELU_SET_3 }
.if REST
    { cmpult $m1, $m0, REST ; fnop }
    .if QUADS < 6
    { brz $m1, done ; fnop }
    .endif
.endif
    { shl $m0, $m0, 3 ; fnop }
    GELU_QUADS
done:
    exitz $mzero
