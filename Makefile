# `make reproduce` and `make test` set up everything they need from Python 3.11+, a C++ compiler and the
# package registry. Nothing outside this folder is changed.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: reproduce test test-slow check format bench lock clean

reproduce: $(READY)  ## run the main job
	$(BIN)/lintra baselines --sequences 200000

test: $(READY)  ## run the tests and the checks
	$(MAKE) check
	$(BIN)/python -m pytest -n 2

test-slow: $(READY)  ## run the tests that take minutes
	$(BIN)/python -m pytest -m slow

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

$(READY): requirements.lock pyproject.toml setup.py $(wildcard native/*)
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "lintra needs Python 3.11 or newer, \
	this is " + sys.version.split()[0] + ". Say which with: make PYTHON=python3.12 ...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python -r requirements.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	touch $@

lock: $(READY)  ## resolve the dependencies anew
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --extra dev --no-header \
	  --upgrade -o requirements.lock pyproject.toml

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis .import_linter_cache
