/* gelu.S - out = gelu(in), elementwise in F16 (gelu.inc). The unit is a quad: four halves, one 64-bit
 * word. Workers take quads in turn (w, w + 6, ...). A result is stored while the next quad is squared. */
.include "launch.inc"
.include "gelu.inc"

.set QUADS, GELU_ELEMENTS / 4
.set SHARE, QUADS / 6 // every worker's; the first REST have one more
.set REST, QUADS % 6

.section .text.ipu_gelu, "ax"
.globl ipu_gelu
.supervisor
.align 8
ipu_gelu:
    LAUNCH_ONCE 2, 2, worker

.worker
.align 8
worker:
    { get $m0, $WSR ; setzi $a0, TAS_GELU & 0xfffff }
    { ld32 $m2, $mvertex_base, $mzero, 0 ; or $a0, $a0, TAS_GELU & 0xfff00000 }
    { ld32 $m3, $mvertex_base, $mzero, 1 ; uput $TAS, $a0 }
.if REST
    cmpult $m1, $m0, REST
    .if SHARE
    add $m1, $m1, SHARE - 1 // quads after the first
    .else
    brz $m1, done
    .endif
.endif
    shl $m0, $m0, 3 // offset of the next load
    mov $m5, $m0    // and store
    { ld64step $a0:1, $m3, $m0+=, 6 ; fnop }
    { nop ; f16v4mul $a4:5, $a0:1, $a0:1 }
.if SHARE > 1 || (SHARE == 1 && REST)
    .if REST
    { rpt $m1, 6 ; fnop }
    .else
    { rpt SHARE - 1, 6 ; fnop }
    .endif
    { nop ; f16v4mul $a4:5, $a4:5, $a0:1 }
    { nop ; f16v4mix $azeros, $a4:5, $a0:1 }
    { nop ; f16v4gacc $a4:5 }
    { nop ; f16v2sigm $a4, $a4 }
    { nop ; f16v2sigm $a5, $a5 }
    { ld64step $a0:1, $m3, $m0+=, 6 ; f16v4mul $a4:5, $a4:5, $a0:1 }
    { st64step $a4:5, $m2, $m5+=, 6 ; f16v4mul $a4:5, $a0:1, $a0:1 }
.endif
    GELU_OF_SQUARE
    st64step $a4:5, $m2, $m5+=, 6
done:
    exitz $mzero
