# The verbs of this repository. `make help` lists them; CI calls the same ones.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip
TARGET := $(or $(CARGO_TARGET_DIR),target)
RUST_SOURCES := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock
HOST = $(shell rustc -vV | sed -n 's/^host: //p')
AGENT := python/ackclock/hosts/ackclock-agent-$(shell uname -m)
# File by file: `cargo fmt` does not see modules that a list declares (`controllers!`, `disciplines!`).
RUSTFMT := rustfmt --edition 2021

# A missing Rust is an error to read, not a download of a toolchain of its own.
export MATURIN_NO_INSTALL_RUST := 1
export PYO3_PYTHON := $(abspath $(PY))
# Whatever other environment is active, ours is the one that is meant.
export VIRTUAL_ENV := $(abspath $(VENV))
unexport CONDA_PREFIX
export PYTHONUTF8 := 1
export PIP_QUIET := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Of the packages only what is imported is compiled, then, and kept.
export PIP_NO_COMPILE := 1
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup environment crates packages core demo agent test oracle fuzz kernel generated lint format bench scoreboard gallery dossiers docs wheel try-wheel clean debian-test debian-bench debian-kernel debian-scoreboard debian-wheel

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.dev  ## the virtual environment .venv: ackclock and the tools to develop it

demo: $(VENV)/.ackclock  ## ten CUBIC flows through one bottleneck: a table and a report
	$(VENV)/bin/ackclock run scenarios/dumbbell.toml --out results/demo
	@printf '\nOpen the report: file://%s\n' '$(abspath results/demo/report.html)'

kernel: $(VENV)/.ackclock debian-kernel  ## the guest kernel of the engine linux, in ~/.cache/ackclock (minutes, once)
	$(VENV)/bin/ackclock kernel build

agent: $(AGENT)  ## what runs on the hosts of a testbed, for machines like this one

test: $(VENV)/.dev debian-test kernel agent  ## all tests but the long oracles
	tools/test.sh $(PY)

oracle: $(VENV)/.dev  ## long comparisons with published numbers
	cargo test --locked --release --workspace --exclude ackclock-python -- --ignored
	$(PY) -m pytest -n 2 -m oracle

fuzz: $(VENV)/.dev  ## the readers with whatever comes, guided by coverage (READER=scenario SECONDS_EACH=3600)
	$(PIP) install 'atheris>=3,<4'
	for reader in $(or $(READER),scenario result files segments); do \
		tests/fuzz/fuzz.sh $$reader $(or $(SECONDS_EACH),600) $(PY) || exit; done

generated: $(VENV)/.dev  ## the editors' schema and the algorithms that captures are compared with, after a change of algorithms or keys
	$(PY) tools/generated_data.py

lint: $(VENV)/.dev  ## formatting, clippy, ruff, mypy, names and sentences
	$(RUSTFMT) --check $(filter %.rs,$(RUST_SOURCES))
	cargo clippy --locked --workspace --all-targets -- -D warnings
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy
	$(PY) tools/vocabulary.py

format: $(VENV)/.dev  ## format Rust and Python
	$(RUSTFMT) $(filter %.rs,$(RUST_SOURCES))
	$(VENV)/bin/ruff check --fix-only --quiet
	$(VENV)/bin/ruff format

bench: $(VENV)/.dev debian-bench  ## speed beside ns-2 and ns-3 (BENCH_OPTIONS=--quick for a short look)
	$(PY) benchmarks/run.py $(BENCH_OPTIONS)

SCORES := results/scoreboard
SCORED := -W ignore benchmarks/scoreboard
scoreboard: $(VENV)/.ackclock debian-scoreboard  ## how well captures are understood: some hundred of them, with their truth
	$(PY) benchmarks/scoreboard/generate.py $(SCORES) --since 15 --jobs 2
	$(PY) $(SCORED)/score.py $(SCORES)/case-* > $(SCORES)/score.txt
	$(PY) $(SCORED)/others.py $(SCORES)/case-00[0-4]* > $(SCORES)/others.txt
	for run in long million; do \
		$(VENV)/bin/ackclock run benchmarks/scoreboard/$$run.toml --no-report --out $(SCORES)/$$run; \
		ln -f $(SCORES)/$$run/captures/seed-1-senders.pcap $(SCORES)/$$run.pcap; \
	done
	tcpdump -r $(SCORES)/long.pcap -w $(SCORES)/data-alone.pcap 'dst port 5001'
	$(PY) $(SCORED)/others.py --speed $(SCORES)/long.pcap --alone $(SCORES)/data-alone.pcap $(SCORES)/million.pcap > $(SCORES)/speed.txt
	$(PY) $(SCORED)/which.py --jobs 2 > $(SCORES)/which.txt
	$(PY) $(SCORED)/stalls.py $(SCORES)/stalls --cases 54 > $(SCORES)/stalls.txt
	$(PY) $(SCORED)/missing.py $(SCORES)/case-00* --jobs 2 > $(SCORES)/missing.txt
	$(PY) $(SCORED)/sharing.py $(SCORES)/sharing > $(SCORES)/sharing.txt
	$(PY) $(SCORED)/joins.py $(SCORES)/case-00[0-4]* > $(SCORES)/joins.txt
	tail -n +1 $(SCORES)/*.txt
	$(PY) docs/make_scoreboard.py $(SCORES)

gallery: $(VENV)/.ackclock  ## all reproductions at full scale, their mechanisms, and docs/gallery; resumes where it was interrupted
	$(VENV)/bin/ackclock reproduce --all --out results/gallery
	$(VENV)/bin/ackclock reproduce --all --ablation all --out results/gallery
	$(PY) docs/make_gallery.py results/gallery

dossiers: $(VENV)/.ackclock  ## whole evaluations of known algorithms, and docs/dossiers; resumes where it was interrupted
	for name in reno cubic bbr bbr3 vegas scalable prague; do \
		$(VENV)/bin/ackclock evaluate $$name --out results/dossiers/$$name || exit; done
	$(VENV)/bin/ackclock evaluate no_backoff --module docs/dossiers/no_backoff.py --out results/dossiers/no_backoff
	$(PY) docs/make_dossiers.py results/dossiers/*

docs: $(VENV)/.docs  ## the documentation site, in site/
	$(PY) docs/make_pages.py
	$(PY) docs/make_agreement.py
	$(PY) docs/make_matrix.py
	$(PY) docs/make_two_kernels.py
	$(PY) docs/make_cubic_in_quic.py
	$(PY) docs/make_oracles.py
	$(PY) docs/make_notebook.py
	$(PY) docs/make_lessons.py
	$(VENV)/bin/zensical build --config-file mkdocs.yml --clean --strict
	RUSTDOCFLAGS='-D warnings' cargo doc --locked --no-deps --workspace --quiet
	rm -rf site/rust
	cp -r $(TARGET)/doc site/rust
	@echo "Open the site: file://$(abspath site/index.html)"

# Linked statically, it runs on any Linux of the same processor, whatever libraries are there.
$(AGENT): $(RUST_SOURCES)
	RUSTFLAGS='-C target-feature=+crt-static -C strip=symbols' cargo build --locked --release --package ackclock-linux --bin ackclock-agent --target $(HOST)
	install -m 755 $(TARGET)/$(HOST)/release/ackclock-agent $@.new
	mv $@.new $@

wheel: $(VENV)/.ackclock $(AGENT)  ## dist/: the sources, and a wheel for Linux on this kind of processor that needs no Rust
	$(PIP) install 'maturin[zig]>=1.9.4,<2'
	rm -rf dist
	$(VENV)/bin/maturin sdist --out dist
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" maturin build --release --locked --zig --compatibility manylinux2014 --out dist

try-wheel: wheel debian-wheel  ## what dist/ has, installed in a root with Debian's Python and nothing else
	tools/try-wheel.sh $(PYTHON)

clean:  ## remove everything that was built or run
	rm -rf $(VENV) target site build dist results .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -f python/ackclock/_core*.so python/ackclock/hosts/ackclock-agent-*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --- what the verbs stand on -------------------------------------------------------------------

$(VENV)/.venv:
	tools/need-toolchain.sh $(PYTHON)
	$(MAKE) --no-print-directory -j 2 environment crates
	@touch $@

environment:
	$(PYTHON) -m venv $(VENV)
	$(PIP) install 'maturin>=1.9.4,<2'

# They come while the environment is made. If they do not, the build says why.
crates:
	-cargo fetch --locked --quiet --target $$(rustc -vV | sed -n 's/^host: //p')

# A stamp without the module it stands for is stale.
$(if $(wildcard python/ackclock/_core*.so),,$(shell rm -f $(VENV)/.ackclock))
# Rebuilt when Rust or the dependencies change; Python sources are used where they are.
$(VENV)/.ackclock: $(VENV)/.venv pyproject.toml $(RUST_SOURCES)
	tools/need-toolchain.sh $(PYTHON)
	$(MAKE) --no-print-directory -j 2 packages core
	$(VENV)/bin/maturin develop --release --locked
	$(PY) -m compileall -q python/ackclock  # or each start does it anew, where Python may not write beside sources
	@touch $@

# Side by side, since pip uses one core and the end of a Rust build another.
packages:
	$(PIP) install $$($(PY) tools/dependencies.py)

core:
	$(VENV)/bin/maturin develop --release --locked --skip-install

$(VENV)/.dev: $(VENV)/.ackclock
	$(PIP) install 'ackclock[dev]'
	@touch $@

$(VENV)/.docs: $(VENV)/.ackclock
	$(PIP) install 'ackclock[docs]'
	@touch $@

# Debian starts the sshd that it installs, which nobody at a desk has asked for, and ns-3 is large: there their tests
# are skipped.
debian-test:
	tools/need-debian.sh chromium=chromium tcpdump=tcpdump ns=ns2 ssh=openssh-client ip=iproute2 ethtool=ethtool \
		$(if $(CI),/usr/sbin/sshd=openssh-server g++=g++ /usr/include/ns3/core-module.h=libns3-dev)

debian-scoreboard:
	tools/need-debian.sh tcptrace=tcptrace tshark=tshark tcpdump=tcpdump

debian-wheel:
	tools/need-debian.sh debootstrap=debootstrap unshare=util-linux

debian-bench:
	tools/need-debian.sh ns=ns2 g++=g++ /usr/include/ns3/core-module.h=libns3-dev

debian-kernel:
	tools/need-debian.sh gcc=gcc make=make flex=flex bison=bison bc=bc xz=xz-utils \
		/usr/include/stdlib.h=libc6-dev ip=iproute2 ethtool=ethtool mount=mount setarch=util-linux
