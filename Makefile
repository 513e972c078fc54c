# Sets everything up from a machine with Python, and runs what is asked for. `make help` lists the targets.

PYTHON ?= python3
BIN := .venv/bin
# The replay's ticks for `make run`; empty: the UI.
TICKS ?=
# Who computes in `make run`: auto, spark or local; empty: as mz.toml says.
ENGINE ?=
# Which benchmarks `make bench` runs, and at which scale factor; empty: all, each at its own.
BENCH ?=
SF ?=
# Which other Pythons `make test-versions` takes; empty: those of the versions that are allowed, on the PATH.
PYTHONS ?=

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1
export DAGSTER_DISABLE_TELEMETRY := yes

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup java jdk node postgres chromium go run test test-needs compiled-tests test-fast test-versions test-deep bench bench-full lint docs dist lock clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1: /p' $(MAKEFILE_LIST)

setup: java .make/project .make/spark ## set everything up

# The virtual environment; made anew when the lock changes and its packages no longer fit.
.make/venv: requirements.lock setup/venv.sh
	@mkdir -p .make
	sh setup/venv.sh "$(PYTHON)" .venv requirements.lock
	@touch $@

.make/project: .make/venv pyproject.toml
	PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

# Delta's jars and an archive of Spark's classes: nothing later waits for a download, and each start takes half the time.
.make/spark: .make/project | java
	$(BIN)/mz-dagster spark prepare
	@touch $@

# node's pg and pgjdbc, which tests connect with.
.make/wire-clients: .make/project setup/clients.py tests/wire/clients/package-lock.json | java jdk node
	$(BIN)/python setup/clients.py
	@touch $@

# Azurite and dbt, which deep tests need.
.make/deep-clients: .make/project setup/clients.py tests/azurite/package-lock.json \
  tests/wire/clients/dbt-requirements.txt | node
	$(BIN)/python setup/clients.py --deep
	@touch $@

java:
	@sh setup/system.sh java

jdk:
	@sh setup/system.sh jdk

node:
	@sh setup/system.sh node

postgres:
	@sh setup/system.sh postgres

chromium:
	@sh setup/system.sh chromium

go:
	@sh setup/system.sh go

# Dagster's instance is the project's own.
run: export DAGSTER_HOME ?= $(CURDIR)/.mz/dagster
run: setup ## replay TICKS=n ticks of the demo, by ENGINE=spark or local, and print what they made; else open the UI
	@mkdir -p "$(DAGSTER_HOME)"
	$(if $(ENGINE),MZ_ENGINE=$(ENGINE)) $(BIN)/mz-dagster $(if $(TICKS),run --ticks $(TICKS),dev)

lint: .make/project ## check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Each of pytest's workers would rewrite and compile all of the tests by itself.
compiled-tests: .make/project
	@$(BIN)/python -m pytest --collect-only -qq -m "not deep" > .make/collected || { cat .make/collected; exit 1; }

# Python's packages and the system's are installed at once.
test-needs: setup lint compiled-tests postgres .make/wire-clients

test: ## lint, then every test that is not deep
	$(MAKE) --no-print-directory --jobs=3 test-needs
	$(BIN)/python -m pytest -q -m "not deep" --numprocesses 3 --dist loadfile --no-loadscope-reorder

test-fast: setup lint postgres .make/wire-clients ## lint, then the tests that start no Spark and are not long
	$(BIN)/python -m pytest -q --fast --numprocesses 3 --dist loadfile --no-loadscope-reorder

test-versions: .make/venv java postgres ## a few tests on the lowest versions, and on PYTHONS="python3.12 ...", by default all found
	UV="$(BIN)/uv" sh setup/versions.sh "$(BIN)/python" $(PYTHONS)

test-deep: setup postgres chromium go .make/wire-clients .make/deep-clients ## the long-running tests, and those of random examples with sixteen times as many
	$(BIN)/python -m pytest -q -m "deep or hypothesis" --hypothesis-profile long --timeout 3600

# A benchmark compares within one run, so nothing else should run meanwhile.
bench: setup postgres ## run all benchmarks, or BENCH=name at SF=n: text, bench/results.json, and plots in docs/
	$(BIN)/python -m bench $(BENCH) $(if $(SF),--sf $(SF))
	$(BIN)/python -m bench.plots

bench-full: setup postgres ## the benchmarks that take hours: scale factor 10
	$(BIN)/python -m bench $(BENCH) --full
	$(BIN)/python -m bench.plots

docs: .make/project ## build the documentation as a site, in build/site
	$(BIN)/python -m docs.functions
	$(BIN)/python -m docs.introspection
	$(BIN)/mkdocs build

dist: .make/project ## build the wheel, in dist/
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

# The lock names no host: where packages come from is the machine's business.
lock: .make/venv ## write requirements.lock and dbt's anew
	$(BIN)/uv pip compile -q --universal --no-strip-extras --python-version 3.11 \
	  --generate-hashes --no-header --no-emit-find-links --no-emit-index-url \
	  --extra avro --extra demo --extra dev --extra iceberg --extra postgres --extra wire --allow-unsafe pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile -q --universal --no-strip-extras --python-version 3.11 --generate-hashes --no-header \
	  --no-emit-find-links --no-emit-index-url tests/wire/clients/dbt-requirements.in -o tests/wire/clients/dbt-requirements.txt

clean: ## stop this project's Spark and remove all that was made here: environment, state and landing folder
	-@test ! -x $(BIN)/mz-dagster || $(BIN)/mz-dagster spark stop > /dev/null 2>&1
	rm -rf .venv .make .mz landing build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
