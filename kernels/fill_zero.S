/* fill_zero.S - FILL_BYTES bytes of zeros.
 *
 * Worker w stores the 64-bit words w, w + 6, ...: the launch gives it the first one's address as its
 * vertex base. A last odd 32-bit word is stored by the worker whose turn it is. */
.set WORDS, FILL_BYTES / 8
.set SHARE, WORDS / 6
.set REST, WORDS % 6
.set HALF, (FILL_BYTES % 8 != 0) & 1

.section .text.ipu_fill_zero, "ax"
.globl ipu_fill_zero
.type ipu_fill_zero, @function
.supervisor
.align 8
ipu_fill_zero:
    setzi $m0, worker
    runall $m0, $m2, 2
    sync 2
    br $m10

.worker
.align 8
worker:
    mov $m0, $mvertex_base
.if REST || HALF
    get $m1, $WSR
    cmpult $m2, $m1, REST
    .if SHARE
    add $m2, $m2, SHARE
    { rpt $m2, 0 ; fnop }
    .else
    rpt $m2, 0
    .endif
    { st64step $azeros, $mzero, $m0+=, 6 ; fnop }
    .if HALF
    cmpeq $m1, $m1, REST
    brz $m1, 1f
    st32 $mzero, $m0, $mzero, 0
1:
    .endif
.else
    rpt SHARE, 0
    { st64step $azeros, $mzero, $m0+=, 6 ; fnop }
.endif
    exitz $mzero
