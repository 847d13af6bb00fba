# `make reproduce` and `make test` set up everything they need from Python 3.11+, a C++ compiler and the
# package registry. Nothing outside this folder is changed.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
ARM_COMPILER ?= aarch64-linux-gnu-g++
ARM_RUN ?= qemu-aarch64

.PHONY: setup reproduce reproduce-from-scratch test test-page page test-slow test-install snapshot docs tables check format bench arm lock clean

setup: $(READY)  ## set up .venv, which all others do by themselves

reproduce: $(READY)  ## Table 1, all figures and the report, from the published weights on fresh sequences
	$(BIN)/lintra report --out report

reproduce-from-scratch: $(READY)  ## the same, with every model trained first; what is in sweeps/ is not trained again
	$(BIN)/lintra sweep table1 --store sweeps
	$(BIN)/lintra sweep figure8 --store sweeps
	$(BIN)/lintra publish sweeps/zoo.safetensors --store sweeps --unsafe
	$(BIN)/lintra report --zoo sweeps/zoo.safetensors --out report

test: $(READY)  ## run the tests and the checks
	$(MAKE) check
	$(BIN)/python -m pytest -n 2

test-page: $(READY)  ## build the explorer page anew, compare it with the committed one, and test it in Chromium
	tests_page/run.sh $(BIN)/python

page:  ## build the explorer page from explorer/, with Node
	npm ci --prefix explorer --loglevel=error
	npm run build --prefix explorer --silent
	cp explorer/dist/explorer.html src/lintra/data/explorer.html

test-slow: $(READY)  ## run the tests that take minutes
	$(BIN)/python -m pytest -m slow

test-install:  ## install into two fresh environments, with the oldest and the newest jax, and run the README in both
	tests_install/run.sh $(PYTHON)

snapshot: $(READY)  ## compare what lintra computes at fixed seeds with tests/snapshot.json
	$(BIN)/python tests/snapshot.py check

docs: $(READY)  ## build the documentation into site/, with every tutorial run and warnings as errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	$(BIN)/lintra explore --no-open --out site/explorer.html

tables: $(READY)  ## write the tables of docs/results.md anew; with REPORT=report also those that `lintra report` measures
	$(BIN)/python docs/tables.py $(if $(REPORT),--report $(REPORT))

check: $(READY)  ## lint, format, types and architecture
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(READY)  ## measure speed, side by side
	$(BIN)/lintra bench

arm:  ## build the kernel for 64-bit ARM and check it under an emulator
	@command -v $(ARM_COMPILER) >/dev/null && command -v $(ARM_RUN) >/dev/null || { echo "make arm needs $(ARM_COMPILER) \
	and $(ARM_RUN); on Debian: apt-get install g++-aarch64-linux-gnu qemu-user"; exit 1; }
	native/check.sh $(ARM_COMPILER) $(ARM_RUN)

# Without build isolation the kernel is compiled against the headers of the locked jaxlib, which it runs with here. A
# package for others is built in isolation, against the oldest headers (pyproject.toml).
$(READY): requirements.lock pyproject.toml setup.py $(wildcard native/*)
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "lintra needs Python 3.11 or newer, \
	this is " + sys.version.split()[0] + ". Say which with: make PYTHON=python3.12 ...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python -r requirements.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	@test -e src/lintra/kernel/_native.so || echo "lintra: the native kernel was not built (is there a C++ compiler?); plain JAX \
	will be used, which is slower."
	touch $@

lock: $(READY)  ## resolve the dependencies anew
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --extra dev --no-header \
	  --upgrade -o requirements.lock pyproject.toml

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis .import_linter_cache
