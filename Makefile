# Everything runs in .venv, which the first target that needs it creates. CI runs these same targets.
# Another interpreter for the environment: make PYTHON=python3.12 test

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
LIGHT  := $(VENV)/.demo-installed
STAMP  := $(VENV)/.installed
PIP    := $(BIN)/python -m pip --disable-pip-version-check
THREADS := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
STEADY := HYPOTHESIS_PROFILE=$${HYPOTHESIS_PROFILE:-steady}
PYTEST := $(THREADS) $(STEADY) WHOSIN_REQUIRE_EXTRAS=1 $(BIN)/python -m pytest --dist loadgroup
LOCKED := $(PIP) install --quiet --require-hashes --no-deps

.DEFAULT_GOAL := help
.PHONY: help demo test test-long test-oldest test-newest test-ray test-s3 fuzz mutate soak check quick dist docs bench experiments lock vulnerabilities sbom clean

help: ## list the targets
	@echo "whosin: can anyone tell who is in your data?"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(LIGHT) ## a whole audit of embedded data, ending in a report (whosin-demo.html)
	@$(BIN)/whosin demo --report whosin-demo.html --force

test: check ## check, then run the tests
	@sh tools/system.sh
	$(PYTEST) -n 2

quick: $(STAMP) ## the tests of what is most often broken, in under two minutes: for every save
	$(PYTEST) -n 2 -x tests/test_project.py tests/guarantees tests/numerics tests/tables tests/mechanisms

test-long: $(STAMP) ## the long statistical sweeps (many minutes; WHOSIN_SEEDS=20 sweeps over seeds)
	$(PYTEST) -n 2 -m long

# The oldest versions that pyproject.toml allows, and the newest that there are, each in an environment of its own.
test-oldest: ## the tests with the oldest allowed version of each dependency (.venv-oldest)
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet -c constraints.txt packaging
	.venv-oldest/bin/python tools/oldest.py > .venv-oldest/oldest.txt
	.venv-oldest/bin/python -m pip install --quiet -c .venv-oldest/oldest.txt -e '.[fast,report,plot]' pandas pyarrow 'pyparsing<3.3' \
		pytest pytest-xdist hypothesis mpmath
	$(THREADS) .venv-oldest/bin/python -m pytest -n 2 --dist loadgroup -W ignore::DeprecationWarning

test-newest: ## the tests with the newest version of each dependency (.venv-newest)
	$(PYTHON) -m venv .venv-newest
	.venv-newest/bin/python -m pip install --quiet --upgrade -e '.[fast,plot,excel,web,ledger]' pandas pyarrow pytest \
		pytest-xdist hypothesis mpmath httpx
	$(THREADS) .venv-newest/bin/python -m pytest -n 2 --dist loadgroup

test-ray: ## the tests on a real Ray cluster of this machine (.venv-ray)
	$(PYTHON) -m venv .venv-ray
	.venv-ray/bin/python -m pip install --quiet -c constraints.txt -e '.[fast,plot,ray,dask]' polars pytest pytest-xdist hypothesis
	$(THREADS) .venv-ray/bin/python -m pytest tests/cluster/test_ray.py

test-s3: ## the tests on an object store of this machine (.venv-s3)
	$(PYTHON) -m venv .venv-s3
	.venv-s3/bin/python -m pip install --quiet -c constraints.txt -e '.[fast,plot]' polars pytest pytest-xdist hypothesis
	.venv-s3/bin/python -m pip install --quiet s3fs
	.venv-s3/bin/python -m pip install --quiet 'moto[server]'
	$(THREADS) .venv-s3/bin/python -m pytest tests/tables/test_object_store.py

fuzz: $(STAMP) ## coverage-guided fuzzing of parsers and public functions (SECONDS_EACH=60)
	@$(LOCKED) -r requirements/fuzz.txt
	@set -e; for target in $$($(BIN)/python -m tests.fuzz --list); do \
		$(BIN)/python -m tests.fuzz $$target --seconds $${SECONDS_EACH:-60}; \
	done

mutate: $(STAMP) ## change the code that carries proofs, one thing at a time: do the tests notice? (COUNT=60 changes a room)
	@$(LOCKED) -r requirements/mutate.txt
	$(BIN)/python tools/mutate.py --count $${COUNT:-60}

soak: $(STAMP) ## an hour of load, kills, full disks, many writers, fuzzers and new seeds (MINUTES=60)
	@$(LOCKED) -r requirements/fuzz.txt
	$(BIN)/python tools/soak.py --minutes $${MINUTES:-60}

check: $(STAMP) ## style, types and the import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The time in the files is that of the last commit, so that the same commit gives the same bytes.
dist: $(LIGHT) ## build wheel and sdist into dist/ twice, compare the bytes, and try both in a clean environment (.venv-dist)
	rm -rf dist .venv-dist
	@set -e; SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)}; export SOURCE_DATE_EPOCH; \
		$(BIN)/python -m hatchling build -d dist; \
		(umask 077 && TZ=Asia/Tokyo PYTHONHASHSEED=1 $(BIN)/python -m hatchling build -d dist/again > /dev/null 2>&1); \
		for built in dist/again/*; do cmp "$$built" "dist/$${built##*/}"; done; rm -r dist/again
	cd dist && sha256sum *.whl *.tar.gz > SHA256SUMS && cat SHA256SUMS
	@for file in CHANGELOG.md Containerfile LICENSE Makefile README.md SECURITY.md tests/test_project.py src/whosin/py.typed; do \
		tar -tzf dist/*.tar.gz | grep -q "/$$file$$" || { echo "the sdist lacks $$file" >&2; exit 1; }; done
	$(PYTHON) -m venv .venv-dist
	@set -e; for built in dist/*.whl dist/*.tar.gz; do echo "trying $$built"; \
		.venv-dist/bin/python -m pip install --quiet --force-reinstall -c constraints.txt "$$built"; \
		(cd .venv-dist && bin/whosin --version && bin/whosin explain --epsilon 1 > /dev/null && bin/python -I -c 'import whosin'); \
	done

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
	$(BIN)/python -m experiments.mace --dataset digits --quick --out experiments/mace/digits

lock: $(STAMP) ## write requirements/*.txt again: the pins of constraints.txt with the hashes of their files
	$(BIN)/python tools/lock.py

vulnerabilities: .venv-tools/.installed ## look up the pinned versions in the vulnerability database (pip-audit; network)
	.venv-tools/bin/pip-audit --strict --disable-pip --require-hashes -r requirements/dev.txt

sbom: $(STAMP) .venv-tools/.installed ## write the bill of materials of the environment (sbom.json, CycloneDX)
	.venv-tools/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible -o sbom.json $(BIN)/python
	@echo "sbom.json: $$(grep -c '"bom-ref"' sbom.json) components"

clean: ## remove caches and built files (the environment stays)
	rm -rf build dist docs/_build docs/_generated docs/gallery docs/sg_execution_times.rst
	rm -rf .fuzz .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests docs examples experiments -name __pycache__ -type d -prune -exec rm -rf {} +

# The environments: pinned versions whose files have the recorded hashes, then whosin itself. `demo` needs few packages;
# the tests need them all. torch has builds that differ by machine, so it is pinned without a hash.
$(LIGHT): pyproject.toml requirements/demo.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "whosin needs Python 3.11 or newer, and '$(PYTHON)' is not: $$($(PYTHON) --version 2>&1)" >&2; \
		echo "Name another one: make PYTHON=python3.12 ..." >&2; \
		exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(LOCKED) -r requirements/demo.txt
	$(PIP) install --quiet --no-deps --no-build-isolation -e .
	@touch $@

$(STAMP): $(LIGHT) requirements/dev.txt constraints.txt
	$(LOCKED) -r requirements/dev.txt
	$(PIP) install --quiet -c constraints.txt "$$(grep '^torch==' constraints.txt)"
	$(PIP) check
	@touch $@

.venv-tools/.installed: requirements/tools.txt
	@test -x .venv-tools/bin/python || $(PYTHON) -m venv .venv-tools
	.venv-tools/bin/python -m pip --disable-pip-version-check install --quiet --require-hashes --no-deps -r requirements/tools.txt
	@touch $@
