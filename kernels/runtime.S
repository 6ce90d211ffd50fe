/* runtime.S - what every tile runs around its generated program: start-up, worker barrier, completion,
 * cycle sampling. Supervisor code but for the worker entries.
 *
 * The linked image is the same on all tiles. What differs between tiles lies in the state block
 * (0x58000): word 4 the address of the generated program, word 5 the logical tile number. */

.set STATE, 0x58000
.set STATE_PROGRAM, 4       // words
.set STATE_LOGICAL, 5
.set STATE_WORKER_BASE, 0xe0 // bytes; worker w: + 0x100 w
.set STATE_STACK, 0x6e0
.set MUX_NEUTRAL, 0x640
.set MUX_HOST, 0x600

/* Entered from the stub at 0x4c010. The loader may start the tile before its own workers are gone:
 * hence the two syncs before anything else. Ends in the generated program. */
.section .text.ipu_start, "ax"
.globl ipu_start
.type ipu_start, @function
.supervisor
.align 8
ipu_start:
    sync 3
    sync 2
    setzi $m0, MUX_NEUTRAL
    put $INCOMING_MUX, $m0
    put $OUTGOING_BASE, $mzero
    put $INCOMING_BASE, $mzero
    put $FP_ICTL, $mzero // no exceptions, nearest even, saturating
    setzi $m1, STATE + STATE_WORKER_BASE
    put $WORKER0_BASE, $m1
    add $m1, $m1, 0x100
    put $WORKER1_BASE, $m1
    add $m1, $m1, 0x100
    put $WORKER2_BASE, $m1
    add $m1, $m1, 0x100
    put $WORKER3_BASE, $m1
    add $m1, $m1, 0x100
    put $WORKER4_BASE, $m1
    add $m1, $m1, 0x100
    put $WORKER5_BASE, $m1
    setzi $m11, STATE + STATE_STACK
    setzi $m2, STATE
    setzi $m3, seed_worker
    runall $m3, $m2, 0
    sync 2
    setzi $m1, MUX_HOST
    put $INCOMING_MUX, $m1
    sync 7
    put $INCOMING_MUX, $m0
    ld32 $m4, $m2, $mzero, STATE_PROGRAM
    br $m4

/* Seed 8 (logical tile + 1) + worker, then sixteen draws. */
.worker
.align 8
seed_worker:
    ld32 $m0, $mvertex_base, $mzero, STATE_LOGICAL
    get $m1, $WSR
    and $m1, $m1, 7
    add $m0, $m0, 1
    shl $m0, $m0, 3
    add $m0, $m0, $m1
    st32 $m0, $mworker_base, $mzero, 0
    ld32 $a0, $mworker_base, $mzero, 0
    uput $PRNG_SEED, $a0
.align 8
    { rpt 16, 0 ; fnop }
    { nop ; urand64 $a0:1 }
    exitz $mzero

/* All contexts at a known point: six workers that only exit. Returns through $m7; $m0 is lost. */
.section .text.ipu_worker_barrier, "ax"
.globl ipu_worker_barrier
.type ipu_worker_barrier, @function
.supervisor
.align 8
ipu_worker_barrier:
    setzi $m0, leave
    runall $m0, $mzero, 0
    sync 2
    br $m7
.worker
leave:
    exitz $mzero

/* The end of the program. */
.section .text.ipu_complete, "ax"
.globl ipu_complete
.type ipu_complete, @function
.supervisor
.align 8
ipu_complete:
    setzi $m0, STATE
    setzi $m1, 1
    st32 $m1, $m0, $mzero, 0
    bri 0

/* The cycle counter to the word at $m2: read by worker 0 in its fourth bundle, three before its end,
 * as published figures were taken. Returns through $m10; $m0, $m5 are lost. */
.section .text.ipu_sample_cycle, "ax"
.globl ipu_sample_cycle
.type ipu_sample_cycle, @function
.supervisor
.align 8
ipu_sample_cycle:
    setzi $m5, STATE + STATE_WORKER_BASE
    setzi $m0, sample
    st32 $m2, $m5, $mzero, 0
    runall $m0, $m5, 0
    sync 2
    br $m10
.worker
sample:
    get $m0, $WSR
    and $m0, $m0, 7
    brnz $m0, 1f
    get $m1, $COUNT_L
    ld32 $m2, $mvertex_base, $mzero, 0
    st32 $m1, $m2, $mzero, 0
1:
    exitz $mzero
