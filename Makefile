# Everything runs in .venv, which the first target that needs it creates. CI runs these same targets.
# Another interpreter for the environment: make PYTHON=python3.12 test

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
PIP    := $(BIN)/python -m pip --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo test long check docs bench experiments clean

help: ## list the targets
	@echo "whosin: can anyone tell who is in your data?"
	@echo
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(STAMP) ## a whole audit of embedded data, ending in a report (whosin-demo.html)
	@$(BIN)/whosin demo --report whosin-demo.html --force

test: check ## check, then run the tests
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2

long: $(STAMP) ## the long statistical sweeps (many minutes)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 -m long tests/long

check: $(STAMP) ## style, types and the import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(STAMP) ## build the pages into docs/_build/html
	$(BIN)/python -m sphinx -b html -W --keep-going docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

bench: $(STAMP) ## run the scripts in benchmarks/
	@set -e; for script in benchmarks/[!_]*.py; do \
		if [ ! -e "$$script" ]; then echo "No benchmarks yet."; break; fi; \
		echo "== $$script"; $(BIN)/python "$$script"; \
	done

experiments: $(STAMP) ## make the figures of the papers again
	$(BIN)/python experiments/one_picture.py
	$(BIN)/python -m experiments.thudi
	$(BIN)/python -m experiments.lowy
	$(BIN)/python -m experiments.izzo

clean: ## remove caches and built files (the environment stays)
	rm -rf build dist docs/_build docs/_generated docs/gallery docs/sg_execution_times.rst
	rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests docs examples experiments -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment. Hatchling is installed first, from the same constraints, so that the build is pinned as well.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "whosin needs Python 3.11 or newer, and '$(PYTHON)' is not: $$($(PYTHON) --version 2>&1)" >&2; \
		echo "Name another one: make PYTHON=python3.12 ..." >&2; \
		exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet -c constraints.txt hatchling editables
	$(PIP) install --quiet --no-build-isolation -c constraints.txt -e '.[dev]'
	@touch $@
