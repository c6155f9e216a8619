# `make repro` and `make test` do all their set-up themselves: a machine needs python3 (3.11 or later) and make.

PYTHON ?= python3
BIN := .venv/bin
export PATH := $(CURDIR)/$(BIN):$(PATH)
# A module is compiled when it is first imported, and kept: less than a third of what is installed.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: border repro setup test test-old-cpu test-quick specification browser-test ranx-test lint format bench docs

repro: setup
	dvc repro

setup: .venv/ready

# uv installs in seconds and takes torch and torchvision from one build, so that they match.
.venv/ready: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python -c constraints.txt -e '.[sample]'
	touch $@

# What tests, checks and benchmarks need besides.
.venv/dev-ready: .venv/ready
	$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python -c constraints.txt -e '.[sample,dev]'
	touch $@

# detectron2's Python part, for the tests of the butd engines alone.
.venv/test-ready: .venv/dev-ready tests/features/extractors/butd/requirements.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python --target .venv/detectron2-tests --no-deps \
		--python-version 3.10 --only-binary sal-detectron2 sal-detectron2==0.7.2
	$(BIN)/uv pip install --quiet --python $(BIN)/python --target .venv/detectron2-tests --no-deps \
		-r tests/features/extractors/butd/requirements.txt
	touch $@

# Two workers, one thread each: torch's threads would wait for one another. `make test FRESH=1` forgets the runs that
# tests have kept; they are made again anyhow when code, settings or libraries have changed.
test: .venv/test-ready
	$(if $(FRESH),rm -rf .pytest_cache/d/made)
	OMP_NUM_THREADS=1 python -m pytest -n 2 --dist worksteal $(TESTS)

# As on an older CPU, one with AVX2 alone or (ISA=SSE41) without it; TESTS=tests/ROOM for some. CONTRIBUTING.md says
# what is not simulated.
ISA ?= AVX2
test-old-cpu: export ONEDNN_MAX_CPU_ISA := $(ISA)
test-old-cpu: export ATEN_CPU_CAPABILITY := $(if $(filter AVX2,$(ISA)),avx2,default)
test-old-cpu: export MKL_ENABLE_INSTRUCTIONS := $(if $(filter AVX2,$(ISA)),AVX2,SSE4_2)
test-old-cpu: export OPENBLAS_CORETYPE := $(if $(filter AVX2,$(ISA)),Haswell,Nehalem)
test-old-cpu: export NPY_DISABLE_CPU_FEATURES := X86_V4 AVX512_ICL AVX512_SPR $(if $(filter AVX2,$(ISA)),,X86_V3)
test-old-cpu: test

# What needs no command, training, extraction or whole run, in a minute.
QUICK := not slow and not border and not browser and not ranx
test-quick: .venv/dev-ready
	OMP_NUM_THREADS=1 python -m pytest -n 2 --dist worksteal -m "$(QUICK)"

# What the product promises, by the tests that say it most plainly, in a minute; the list alone:
# pytest --collect-only -m "specification and not ranx"
specification: .venv/dev-ready
	OMP_NUM_THREADS=1 python -m pytest -n 2 --dist worksteal -m "specification and not ranx"

# The quick tests without each extension in turn: some minutes for each.
border: .venv/dev-ready
	OMP_NUM_THREADS=1 python -m pytest -n 2 -m border tests/test_border.py

# Debian: apt-get install chromium
browser-test: .venv/dev-ready
	$(BIN)/uv pip install --quiet --python $(BIN)/python -c constraints.txt -e '.[browser]'
	python -m pytest -m browser tests/browser tests/extensions

# ranx compiles its code for a minute; `make test` compares with the other libraries alone.
ranx-test: .venv/dev-ready
	$(BIN)/uv pip install --quiet --python $(BIN)/python -c constraints.txt -e '.[ranx]'
	python -m pytest -m ranx tests/evaluation/metrics tests/extensions/leaderboards

lint: .venv/dev-ready
	ruff format --check .
	ruff check .
	mypy

format: .venv/dev-ready
	ruff format .
	ruff check --fix .

bench: .venv/dev-ready
	python -m benchmarks

.venv/docs-ready: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python -c constraints.txt --group docs
	touch $@

# The documentation as a site, in site/; it needs nothing of the package.
docs: .venv/docs-ready
	NO_MKDOCS_2_WARNING=1 mkdocs build --strict
