# The two commands of a newcomer are `make demo` and `make check`; both set up what is missing.
# `make install PREFIX=...` puts the command, its man page and the completion of bash there.

BUILD ?= build
PREFIX ?= /usr/local
WEIGHTS = models/digits-vit/digits-vit.safetensors

.PHONY: all install setup demo check check-long bench format lint clean

all: setup
	@test -f $(BUILD)/build.ninja || cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=Release > /dev/null
	@ninja -C $(BUILD) ipu-stack

install: all
	@ninja -C $(BUILD) manual
	@cmake -DCMAKE_INSTALL_PREFIX=$(PREFIX) -P $(BUILD)/cmake_install.cmake

setup:
	@scripts/setup.sh

demo: all
	@scripts/demo.sh $(BUILD)

check: setup
	@scripts/check.sh

check-long: setup
	@scripts/check.sh long

bench: all
	@scripts/bench.sh $(BUILD)

format:
	@git ls-files '*.c' '*.h' | xargs clang-format -i

lint:
	@scripts/setup.sh check
	@scripts/lint.sh

clean:
	rm -rf build build-*
