/* reduce_sum.S - out = seed + partial 0 + partial 1 + ...; with REDUCE_GELU its GELU (gelu.inc). The
 * partials lie one after another, REDUCE_ELEMENTS halves each. Members in interleaved memory are summed
 * in F32, eight halves at a time (sum_octets.inc); this file is for members anywhere: sums in F16, one
 * rounding an addition, in this order.
 *
 * The unit is a quad: four halves, one 64-bit word. Workers take quads in turn (w, w + 6, ...). A quad
 * needs REDUCE_PARTIALS loads and a store; a quad's members lie at constant distances, so the body is
 * unrolled over them and repeated over the quads, and holds nothing but these accesses: a sum is
 * finished and stored in the next quad's body. A load reaches REACH words beyond its base, so long
 * stacks have more than one base. Stacks too long even for that (REDUCE_WALK) are walked by a pointer,
 * with one repeat a quad. */
.include "launch.inc"
.include "gelu.inc"

.if REDUCE_INTERLEAVED
.include "sum_octets.inc"
.else

.set QUADS, REDUCE_ELEMENTS / 4
.set SHARE, QUADS / 6 // every worker's; the first REST have one more
.set REST, QUADS % 6
.set STACK, REDUCE_PARTIALS - 1

.section .text.ipu_reduce_sum, "ax"
.globl ipu_reduce_sum
.supervisor
.align 8
ipu_reduce_sum:
    LAUNCH_ONCE 3, 4, worker

.worker
.align 8
worker: // instructions outside of bundles in even numbers before a repeat, whose body is aligned
    get $m0, $WSR
    ld32 $m2, $mvertex_base, $mzero, 0
    ld32 $m3, $mvertex_base, $mzero, 1
    ld32 $m4, $mvertex_base, $mzero, 2
.if REST
    cmpult $m1, $m0, REST
    .if SHARE
    add $m1, $m1, SHARE - 1 // quads after the first
    .else
    brz $m1, done
    .endif
.endif
    shl $m0, $m0, 3 // offset of the seed's quad
    mov $m5, $m0    // and of the others'

.if !REDUCE_WALK
.set REACH, 4096
.set BASES, (STACK - 1) * QUADS / REACH + 1
.if BASES > 1
    add $m6, $m4, 8 * REACH
.endif
.if BASES > 2
    add $m7, $m6, 8 * REACH
.endif
.if BASES > 3
    add $m8, $m7, 8 * REACH
.endif
.if BASES > 4
    add $m9, $m8, 8 * REACH
.endif
.if BASES > 5
    add $m10, $m9, 8 * REACH
.endif
.if BASES % 2 == 0
    nop
.endif

.macro ADD_MEMBER base
    .if MEMBER == 0
    { ld64 $a2:3, \base, $m5, 0 ; fnop }
    .elseif MEMBER % 2 == 1
    { ld64 $a4:5, \base, $m5, MEMBER * QUADS % REACH ; f16v4add $a0:1, $a0:1, $a2:3 }
    .else
    { ld64 $a2:3, \base, $m5, MEMBER * QUADS % REACH ; f16v4add $a0:1, $a0:1, $a4:5 }
    .endif
.endm

/* Loads the stack's members into $a2:3 and $a4:5 in turn and adds all but the last to $a0:1. */
.macro ADD_MEMBERS
    .set MEMBER, 0
    .rept STACK
        .set BASE, MEMBER * QUADS / REACH
        .if BASE == 0
    ADD_MEMBER $m4
        .elseif BASE == 1
    ADD_MEMBER $m6
        .elseif BASE == 2
    ADD_MEMBER $m7
        .elseif BASE == 3
    ADD_MEMBER $m8
        .elseif BASE == 4
    ADD_MEMBER $m9
        .else
    ADD_MEMBER $m10
        .endif
        .set MEMBER, MEMBER + 1
    .endr
.endm

.macro FINISH_SUM instruction:vararg
    .if STACK % 2 == 1
    { \instruction ; f16v4add $a6:7, $a0:1, $a2:3 }
    .else
    { \instruction ; f16v4add $a6:7, $a0:1, $a4:5 }
    .endif
.endm

.if REDUCE_GELU
.macro GELU_OF_SUM
    ADD_MEMBERS
    .if STACK % 2 == 1
    { nop ; f16v4add $a0:1, $a0:1, $a2:3 }
    .else
    { nop ; f16v4add $a0:1, $a0:1, $a4:5 }
    .endif
    { nop ; f16v4mul $a4:5, $a0:1, $a0:1 }
.endm
    { nop ; setzi $a2, TAS_GELU & 0xfffff }
    { nop ; or $a2, $a2, TAS_GELU & 0xfff00000 }
    { ld64step $a0:1, $m3, $m0+=, 6 ; uput $TAS, $a2 }
    .if SHARE > 1 || (SHARE == 1 && REST)
        .if REST
    { rpt $m1, STACK + 8 ; fnop }
        .else
    { rpt SHARE - 1, STACK + 8 ; fnop }
        .endif
    GELU_OF_SUM
    { nop ; f16v4mul $a4:5, $a4:5, $a0:1 }
    { nop ; f16v4mix $azeros, $a4:5, $a0:1 }
    { nop ; f16v4gacc $a4:5 }
    { nop ; f16v2sigm $a4, $a4 }
    { nop ; f16v2sigm $a5, $a5 }
    { ld64step $a0:1, $m3, $m0+=, 6 ; f16v4mul $a4:5, $a4:5, $a0:1 }
    { st64step $a4:5, $m2, $m5+=, 6 ; fnop }
    .endif
    GELU_OF_SUM
    GELU_OF_SQUARE
    st64step $a4:5, $m2, $m5+=, 6

.else
    { ld64step $a0:1, $m3, $m0+=, 6 ; fnop }
    ADD_MEMBERS
    .if SHARE > 1 || (SHARE == 1 && REST)
        .if REST
    { rpt $m1, STACK + 1 ; fnop }
        .else
    { rpt SHARE - 1, STACK + 1 ; fnop }
        .endif
    FINISH_SUM ld64step $a0:1, $m3, $m0+=, 6
    { st64step $a6:7, $m2, $m5+=, 6 ; fnop }
    ADD_MEMBERS
    .endif
    FINISH_SUM nop
    st64step $a6:7, $m2, $m5+=, 6

.endif

.else
    .if REST == 0
    setzi $m1, SHARE - 1
    .elseif SHARE == 0
    mov $m1, $mzero
    .endif
    .if REST && SHARE
    { setzi $m7, QUADS ; fnop } // from member to member, in words
    .else
    setzi $m7, QUADS
    .endif
quad:
    ld64step $a0:1, $m3, $m0+=, 6
    mov $m6, $m5
    ld64step $a2:3, $m4, $m6+=, $m7
    rpt STACK - 1, 0
    { ld64step $a2:3, $m4, $m6+=, $m7 ; f16v4add $a0:1, $a0:1, $a2:3 }
    { nop ; f16v4add $a0:1, $a0:1, $a2:3 }
    st64step $a0:1, $m2, $m5+=, 6
    brnzdec $m1, quad
.endif
done:
    exitz $mzero
.endif
