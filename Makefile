# The front door. Meson and ninja do the work (meson.build), under build/; see CONTRIBUTING.md.
PREFIX ?= /usr/local
LIBDIR ?= lib
BUILD ?= build
export BUILD

help:
	@echo 'make demo         threads and processes talk, 64 MiB changes hands, one is killed, a table of speeds: within a minute'
	@echo 'make check        the tests at quick counts: within 3 minutes'
	@echo 'make check-full   full counts, both compilers, sanitizers, models, stress: within 30 minutes where building is fast'
	@echo 'make check-long   ten times the counts, no bound; the result goes into docs/figures.csv'
	@echo 'make bench        the marks against the raw limits of this machine: within 5 minutes'
	@echo 'make build        the library, the examples and the benchmarks, under $(BUILD)/release'
	@echo 'make install      the library, headers, man pages and weft.pc; PREFIX=$(PREFIX), DESTDIR='
	@echo 'make clean        remove $(BUILD)/'
	@echo
	@echo 'What they need is in tools/packages: root on Debian gets it installed, others are told.'

build:
	@tools/need build
	@tools/build release

demo:
	@tools/need build peers
	@tools/build release
	@bench/demo $(BUILD)/release

bench:
	@tools/need build peers
	@tools/build release
	@bench/run $(BUILD)/release $(BENCH)

check:
	@tools/need build check
	@tools/check quick $(AREAS)

check-full:
	@tools/need build check full
	@tools/check full $(AREAS)

check-long:
	@tools/need build check full
	@tools/check long $(AREAS)

install:
	@tools/need build
	@tools/install '$(PREFIX)' '$(LIBDIR)'

clean:
	rm -rf '$(BUILD)'

.PHONY: help build demo bench check check-full check-long install clean
