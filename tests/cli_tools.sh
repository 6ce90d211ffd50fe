#!/bin/sh
# cli_tools.sh COMMAND - the verbs of the low-level toolchain as a user meets them: as, dis, link, obj, sim,
# kernel. What they write, their messages with places, exit status 0, 1 (the work failed), 2 (usage).
. "$(dirname "$0")/expect.sh"

same() {
    cmp -s "$1" "$2" || { fail "$3"; diff "$1" "$2" | head -5; }
}

cat >"$work/scale.S" <<'END'
.section .text.scale, "ax", @progbits
.globl scale
.type scale, @function
.align 8
scale:
    setzi $m0, table
    setzi $m2, COUNT
    bri 2f
    .align 8
2:  { ld64step $a0:1, $mzero, $m0+=, 1 ; fnop }
    { st64step $a2:3, $mzero, $m0+=, -1 ; f32v2mul $a2:3, $a4:B, $a0:1 }
    { nop ; f16v4hihov4amp $a2:3, $a0:1, $azeros, TAMP_F16V4_E4_P1 }
    brnzdec $m2, 2b
    exitz $mzero
.size scale, . - scale
.section .text.unused, "ax", @progbits
unused: exitnz $mzero
.data
.align 8
table: .float 1.5, -2
.word scale, 0x12345678
END

# as: object, listing, defines
expect 0 "" "$stack" as "$work/scale.S" -D COUNT=3 -o "$work/scale.o" --listing "$work/listing"
grep -q "    5 000000 .* setzi .m0, table" "$work/listing" && fail "the listing has another line 5"
grep -q "    6 000000 [0-9a-f]\{8\} .*setzi .m0, table" "$work/listing" || fail "no line 6 in the listing"
grep -q "section .data" "$work/listing" || fail "no section in the listing"
expect 0 "   20 .*00 00 c0 3f 00 00 00 c0" "$stack" as "$work/scale.S" -DCOUNT=3 -o "$work/again.o" --listing -
same "$work/scale.o" "$work/again.o" "two runs of as differ"
expect 1 "scale.S:10:7: instruction requires: Worker mode" "$stack" as "$work/scale.S" --supervisor -o "$work/none.o"
[ -e "$work/none.o" ] && fail "as writes an object after errors"
printf 'nop\n  add $m0, $m1, $a2\n.macro m\n bogus 1\n.endm\n m\n' >"$work/bad.S"
expect 1 "^$work/bad.S:2:17: invalid operand for instruction add" "$stack" as "$work/bad.S" -o "$work/none.o"
grep -q "^$work/bad.S:4:2: unknown instruction or macro 'bogus'" "$work/out" || fail "the second error is missing"
grep -q "^    in macro m from $work/bad.S:6:2" "$work/out" || fail "the macro's call is missing"
expect 1 "No such file" "$stack" as "$work/none.S"
expect 1 "NAME or NAME=VALUE, not =3" "$stack" as -D =3 "$work/scale.S"
expect 1 "NAME or NAME=VALUE, not 3x=1" "$stack" sim -D 3x=1 "$work/scale.S"
expect 0 "warning: -I $work/nosuch: there is no such folder" "$stack" as -I "$work/nosuch" -D COUNT=1 "$work/scale.S" -o "$work/x.o"
printf '.long 1 << 200\n' >"$work/shift.S"
expect 0 "shift.S:1:1: warning: shift count 200" "$stack" as "$work/shift.S" -o "$work/x.o"
expect 2 "missing" "$stack" as
expect 2 "unknown option" "$stack" as --nonsense "$work/scale.S"

# obj
expect 0 "scale" "$stack" obj "$work/scale.o"
"$stack" obj --json "$work/scale.o" >"$work/obj.json" || fail "obj --json"
python3 - "$work/obj.json" <<'END' || fail "obj --json is not what it should be"
import json, sys
o = json.load(open(sys.argv[1]))
sections = {s["name"]: s for s in o["sections"]}
assert sections[".data"]["bytes"] == 16 and "x" in sections[".text.scale"]["flags"], sections
symbol = next(s for s in o["symbols"] if s["name"] == "scale")
assert symbol["function"] and symbol["value"] == 0 and symbol["size"] == sections[".text.scale"]["bytes"], symbol
kinds = {(r["section"], r["offset"]): r["type"] for r in o["relocations"]}
assert kinds[(".text.scale", 0)] == "20" and kinds[(".data", 8)] == "32", kinds
END
expect 1 "not an ELF file\|not a 32-bit ELF file" "$stack" obj "$work/scale.S"
for bytes in 0 40 52 60 400; do
    head -c $bytes "$work/scale.o" >"$work/cut.o"
    expect 1 "cut.o: " "$stack" obj "$work/cut.o"
done
expect 1 "cut.o: the table of sections lies outside of the file" "$stack" link "$work/cut.o" -o "$work/x"

# link: what is reached, map, base
expect 0 "entry=0x4c018" "$stack" link "$work/scale.o" --entry scale -o "$work/image" --map "$work/map"
grep -q "^0x4c018 .* g scale$" "$work/map" || fail "scale is not in the map"
grep -q " l table$" "$work/map" || fail "table is not in the map"
grep -q "unused" "$work/map" && fail "a section that nothing reaches is linked"
expect 0 "base=0x50000 " "$stack" link "$work/scale.o" --base 0x50000 -o "$work/image2" --map -
grep -q "unused" "$work/out" || fail "without roots everything is linked"
expect 1 "0x4c019 is no multiple" "$stack" link "$work/scale.o" --base 0x4c019 -o "$work/x"
expect 2 "bad value" "$stack" link "$work/scale.o" --base 0x100 -o "$work/x"
expect 1 "no symbol 'nowhere'\|'nowhere'" "$stack" link "$work/scale.o" --entry nowhere -o "$work/x"
expect 1 "defined in .* and in" "$stack" link "$work/scale.o" "$work/again.o" -o "$work/x"
expect 1 "NAME=VALUE: =3" "$stack" link "$work/scale.o" --define =3 -o "$work/x"

# dis: of an object; of the image, which assembles and links to the same bytes again
expect 0 "{ nop ; f16v4hihov4amp .a2:3, .a0:1, .a14:15, 1 }" "$stack" dis "$work/scale.o"
grep -q "^scale:$" "$work/out" || fail "dis shows no symbols"
"$stack" dis "$work/image" --base 0x4c018 >"$work/dis.S" 2>"$work/warnings" || fail "dis of an image"
[ -s "$work/warnings" ] && fail "dis warns of sound code: $(cat "$work/warnings")"
expect 0 "base=0x4c018" "$stack" link "$work/dis.S" -o "$work/image3"
same "$work/image" "$work/image3" "the image is another one after dis and as"
expect 0 "scale.S is text, not an object" "$stack" dis "$work/scale.S"
printf '\000\000\000\000\000\000\000\000\000\000\000\000\000' >"$work/data"
expect 0 "hardly raw code: 3 of its 3 words" "$stack" dis "$work/data"
expect 2 "mode is" "$stack" dis --mode nobody "$work/image"

# sim
"$stack" sim "$work/scale.o" --json --set '$a4=0x40000000' --entry scale >"$work/sim.json" 2>"$work/err" || fail "sim: $(cat "$work/err")"
python3 - "$work/sim.json" <<'END' || fail "sim --json is not what it should be"
import json, sys
o = json.load(open(sys.argv[1]))
assert o["fault"] is None and o["context"] == "worker0" and o["stop"] == "exited", o
assert o["registers"]["$m2"] == "0x00000000" and o["bundles"]["worker0"] == 20, o
assert o["cycles"] == 120 and o["csrs"]["FP_STS"] == "0x00000000", o
END
printf 'f: ld32 $m0, $mzero, $mzero, 0\n exitz $mzero\n' >"$work/fault.S"
expect 1 "INVALID_ADDR" "$stack" sim "$work/fault.S" --mode worker --json
expect 1 "limit of cycles" "$stack" sim "$work/scale.o" --entry scale --max-cycles 20
expect 1 "0x4c102 is no multiple" "$stack" sim "$work/scale.o" --base 0x4c102
expect 2 "mode is supervisor or worker" "$stack" sim "$work/scale.o" --mode nobody

# the C preprocessor: its output, and --cpp
cat >"$work/c.S" <<'END'
#include <poplar/TileConstants.hpp>
#include "value.h"
#define REG $m3
#if WIDE > 2
.globl wide
wide: setzi REG, VALUE(WIDE)
    exitz $mzero
#else
    bogus $m1, \
        VALUE(3)
#endif
END
echo '#define VALUE(x) (x * 7)' >"$work/value.h"
expect 1 "c.S:3:1: #define: run the C preprocessor first (--cpp)" "$stack" as "$work/c.S"
if command -v cpp >/dev/null; then
    expect 0 ".m3=0x00000023" "$stack" sim --cpp -D WIDE=5 "$work/c.S"
    expect 1 "^$work/c.S:9:5: unknown instruction or macro 'bogus'" "$stack" as --cpp "$work/c.S" -o "$work/x.o"
    printf '#define TWICE(x) x, x\n.word TWICE(7)\n' >"$work/twice.S"
    expect 0 "bytes=8" "$stack" link --cpp "$work/twice.S" -o "$work/x"
    sed 's/TileConstants.hpp/nothing.hpp/' "$work/c.S" >"$work/d.S"
    expect 1 "d.S:1:10: .*nothing.hpp" "$stack" as --cpp "$work/d.S" -o "$work/x.o"
    grep -q "d.S: cpp does not accept it" "$work/out" || fail "who refused d.S is not said"
    sed 1d "$work/c.S" >"$work/e.S"
    cpp -undef -DWIDE=3 -xassembler-with-cpp "$work/e.S" "$work/e.i"
    expect 0 "" "$stack" as "$work/e.i" -o "$work/e.o"
    cpp -undef -xassembler-with-cpp "$work/e.S" "$work/e.i"
    expect 1 "^$work/e.S:8:5: unknown instruction or macro 'bogus'" "$stack" as "$work/e.i" -o "$work/e.o"
fi
expect 1 "can not run cpp" env PATH=/nonexistent "$stack" as --cpp "$work/c.S"

# kernel
expect 0 "^gemm " "$stack" kernel list
expect 0 "^layer_norm .*epsilon=DECIMAL" "$stack" kernel list
expect 0 "^kernel=gemm precision=f16 rows=81 inner=80 columns=80 weights=interleaved output=plain cycles=[0-9]* formulaCycles=[0-9]* relativeRmsError=" \
    "$stack" kernel run gemm --precision f16 --rows 81 --inner 80 --columns 80 --weights interleaved --output plain
expect 0 '"relativeRmsError": [0-9]' "$stack" kernel run gemm --precision f8 --rows 7 --inner 32 --columns 16 --weights standard --json
expect 0 "epsilon=1e-05 .*relativeRmsError=0" "$stack" kernel run layer_norm --set rows=20 --set columns=64 --set epsilon=1e-5
cp "$work/out" "$work/first"
expect 0 "." "$stack" kernel run layer_norm --set rows=20 --set columns=64 --set epsilon_bits=0x3727c5ac
same "$work/out" "$work/first" "epsilon and epsilon_bits differ"
expect 0 "from=f16 to=f8" "$stack" kernel run cast --set from=f16 --set to=f8 --set elements=64
expect 0 "order=left" "$stack" kernel run pack --set order=left --set matrices=1 --set rows=8 --set columns=16 --set physicalRows=8 --set physicalColumns=16 --set pitch=16
expect 1 "scale=DECIMAL is wanted" "$stack" kernel run softmax --set scale=much
expect 1 "from=f16|f32|f8 is wanted" "$stack" kernel run cast --set from=f17
expect 1 "NAME=NUMBER is wanted" "$stack" kernel run cast --set elements=
expect 1 "has no parameter" "$stack" kernel run gelu --set nothing=1
expect 1 "no kernel nothing" "$stack" kernel run nothing
expect 1 "precision is f16 or f8" "$stack" kernel run gemm --precision f64
expect 2 "list, or run NAME" "$stack" kernel walk

[ "$failures" = 0 ] && echo "all good"
exit "$failures"
