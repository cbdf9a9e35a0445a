# Bare `make` prints what there is. Nothing here needs to be activated: every command names its environment.
.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.SECONDARY:
MAKEFLAGS += --no-builtin-rules

PYTHON ?= python3.11
export PYTHON
# Of this folder and of nothing else: what a shell has set for another project must not leak into these environments.
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV
# Modules are compiled once, not by each process anew: forbidden by an image, it makes an import of pandas cost thrice.
unexport PYTHONDONTWRITEBYTECODE PYTHONPYCACHEPREFIX

VENV := .venv
AIRFLOW_VENV := .venv-airflow
BIN := $(VENV)/bin
AIRFLOW_BIN := $(AIRFLOW_VENV)/bin
UV := $(BIN)/uv
# PySpark comes as sources, and its wheel is 430 MB of jars that are compressed already: to compress them again takes 17 s.
SYNC = $(UV) pip sync --quiet --require-hashes --build-constraints requirements/bootstrap.lock \
  --config-settings-package pyspark:--build-option=--compression=stored
# What the jobs' environment holds; an image needs neither tests nor the demo's map: requirements/jobs.lock requirements/bootstrap.lock
LOCKS := requirements/dev.lock requirements/demo.lock
EDITABLE = $(UV) pip install --quiet --no-deps --no-build-isolation --editable .
MVN := mvn --quiet --batch-mode --strict-checksums -Dstyle.color=never
# Tests of DAGs need Airflow, all others need Spark: the two cannot share an environment.
PYTEST := $(BIN)/python -m pytest --ignore=tests/dags
# What `make test` runs: all that has none of the marks of services (SERVICES in tests/conftest.py).
NO_SERVICES := not spark and not airflow and not browser
# Side by side on the cores that there are, and one more, for many wait for processes and disks; what starts Spark stays
# in one process (tests/conftest.py).
SIDE_BY_SIDE = --numprocesses=$$(($$(nproc) + 1)) --maxprocesses=4 --dist=loadgroup
PYTEST_DAGS := $(AIRFLOW_BIN)/python -m pytest tests/dags
ARGS ?=

.PHONY: help
help: ## this list
	@grep -hE '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-15s %s\n", $$1, $$2 }'

# --- set-up: done once, then again only for what has changed -------------------------------------------------------------

.PHONY: setup
setup: setup-run page jars/kafka/.complete jars/spark-kafka/.complete jars/python/.complete ## look at the machine; both Python environments, Spark's jars, the page, what tests need (no network when nothing has changed)

.PHONY: setup-run
setup-run: $(VENV)/.ready $(AIRFLOW_VENV)/.ready jars/.complete # what an image needs: no tests, and no Node, for the page comes from a stage of its own

.PHONY: preflight
preflight: # whether this machine has what is needed: Python 3.11, Java 17 or 21, Maven, Node 20, memory, disk
	@python3 tools/preflight.py

$(VENV)/.bootstrapped: requirements/bootstrap.lock | preflight
	@echo "setup: $(VENV) (installer)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bootstrap.lock
	@touch $@

$(VENV)/.synced: $(VENV)/.bootstrapped $(LOCKS) | preflight
	@echo "setup: $(VENV) ($(LOCKS); some 1.5 GB with what tests need)"
	@$(SYNC) --python $(BIN)/python $(LOCKS)
	@touch $@

$(AIRFLOW_VENV)/.synced: $(VENV)/.bootstrapped requirements/airflow.lock | preflight
	@echo "setup: $(AIRFLOW_VENV) (Airflow)"
	@[ -x $(AIRFLOW_BIN)/python ] || $(PYTHON) -m venv --without-pip $(AIRFLOW_VENV)
	@$(SYNC) --python $(AIRFLOW_BIN)/python requirements/airflow.lock
	@touch $@

# Our own package, as it lies here: a change of code needs nothing, a change of pyproject.toml no network.
%/.ready: %/.synced pyproject.toml | preflight
	@$(EDITABLE) --python $*/bin/python
	@touch $@

# One after the other, however many jobs make has: both write fairway_streams.egg-info.
$(AIRFLOW_VENV)/.ready: | $(VENV)/.ready

jars/.complete: pom.xml requirements/jars.sha256 | preflight
	@echo "setup: jars (Delta and Sedona for Spark)"
	@mkdir -p jars && rm -f jars/*.jar
	@$(MVN) dependency:copy-dependencies -DoutputDirectory=jars
	@cd jars && sha256sum --check --quiet --strict ../requirements/jars.sha256
	@touch $@

# After the others, for both write into Maven's repository.
jars/kafka/.complete: pom-kafka.xml requirements/jars-kafka.sha256 | preflight jars/.complete
	@echo "setup: jars/kafka (a Kafka broker for tests)"
	@mkdir -p jars/kafka && rm -f jars/kafka/*.jar
	@$(MVN) --file pom-kafka.xml dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=jars/kafka
	@cd jars/kafka && sha256sum --check --quiet --strict ../../requirements/jars-kafka.sha256
	@touch $@

jars/spark-kafka/.complete: pom-spark-kafka.xml requirements/jars-spark-kafka.sha256 | preflight jars/kafka/.complete
	@echo "setup: jars/spark-kafka (Kafka for Spark, for the examples of docs/continuous.md)"
	@mkdir -p jars/spark-kafka && rm -f jars/spark-kafka/*.jar
	@$(MVN) --file pom-spark-kafka.xml dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=jars/spark-kafka
	@cd jars/spark-kafka && sha256sum --check --quiet --strict ../../requirements/jars-spark-kafka.sha256
	@touch $@

# The youngest Python that the wheel is tried on, which few machines have. Its own root is a folder inside the jar.
jars/python/.complete: pom-python.xml requirements/jars-python.sha256 | preflight jars/spark-kafka/.complete
	@echo "setup: jars/python (Python 3.14 for make deep ARGS=pythons)"
	@rm -rf jars/python && mkdir -p jars/python
	@$(MVN) --file pom-python.xml dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=jars/python
	@cd jars/python && sha256sum --check --quiet --strict ../../requirements/jars-python.sha256
	@cd jars/python && $(PYTHON) -m zipfile -e cpython-*.jar . && mv org/bytedeco/cpython/linux-x86_64 3.14
	@rm -r jars/python/org jars/python/META-INF jars/python/*.jar && chmod +x jars/python/3.14/bin/*
	@touch $@

# Spark's classes as a JVM of tests has them at once. Any of our sessions makes them; those of another Spark are no use.
build/spark-classes.jsa: $(VENV)/.ready jars/.complete tests/kit/jvm.py
	@echo "setup: build/spark-classes.jsa (so that JVMs of tests start in less time)"
	@$(BIN)/python -m tests.kit.jvm >/dev/null
	@touch $@

# The page that `fairway serve` gives out: made anew when its sources or its lock have changed. An image has no sources of it.
PAGE := st_common/server/page_files
PAGE_SOURCES := $(shell find web/src -type f 2>/dev/null) web/build.mjs web/tsconfig.json

.PHONY: page
page: $(PAGE)/.built # made of web/, and made anew by each target that shows it

web/node_modules/.ready: web/package.json web/package-lock.json web/.npmrc | preflight
	@echo "setup: web/node_modules (what the page is made of)"
	@cd web && npm ci --silent
	@touch $@

$(PAGE)/.built: web/node_modules/.ready $(PAGE_SOURCES)
	@echo "setup: $(PAGE) (the page)"
	@cd web && npm run --silent types && npm run --silent build
	@touch $@

# --- checks ------------------------------------------------------------------------------------------------------------

.PHONY: fmt
fmt: $(VENV)/.ready ## put the code into shape
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

CHECKS := lint types imports contracts lock coverage

.PHONY: check
check: $(addprefix check-,$(or $(filter $(CHECKS),$(ARGS)),$(CHECKS))) ## every check that CI runs besides the tests: style, types, imports, contracts, locks, coverage (ARGS="lint types": only these)
	$(if $(filter-out $(CHECKS),$(ARGS)),$(error ARGS: choose from: $(CHECKS)))

.PHONY: check-lint
check-lint: $(VENV)/.ready web/node_modules/.ready # style and spelling
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@git ls-files -z -- ':!tests' ':!docs/query-language.md' ':!st_common/detect/words.py' | xargs -0 $(BIN)/codespell
	@cd web && npm run --silent lint >/dev/null || { npm run lint; exit 1; }

.PHONY: check-types
check-types: $(VENV)/.ready # mypy, strict
	@$(BIN)/mypy

.PHONY: check-imports
check-imports: $(VENV)/.ready # who may import whom
	@$(BIN)/lint-imports --no-logo

.PHONY: check-contracts
check-contracts: $(VENV)/.ready # the data contracts in data_contracts/: their sums are written when all hold
	@$(BIN)/python tools/check_contracts.py

.PHONY: check-lock
check-lock: $(VENV)/.bootstrapped # every lock is what its .in file gives, and names no address
	@$(BIN)/python tools/lock.py --check

.PHONY: check-coverage
check-coverage: marks # docs/coverage.md is fresh, and every row that is claimed has a test
	@$(BIN)/python tools/coverage.py --check $(MARKS)

# --- tests -------------------------------------------------------------------------------------------------------------

.PHONY: test
test: setup ## set up, then every test that needs no Spark, no Airflow and no browser; laws try the same cases each time, as in CI
	@echo "test: library, command line, server, in $(VENV)"; HYPOTHESIS_PROFILE=$${HYPOTHESIS_PROFILE:-ci} $(PYTEST) $(SIDE_BY_SIDE) -m "$(NO_SERVICES)" $(ARGS)

.PHONY: test-services
test-services: setup ## set up, then every other test, side by side: Spark and its cluster, DAGs, Airflow on PostgreSQL, the page in a browser
	@$(MAKE) --no-print-directory --jobs=3 --keep-going --output-sync=target test-spark test-browser test-airflow test-dags

.PHONY: test-fast
test-fast: $(VENV)/.ready ## what runs in seconds: no services, no processes, nothing slow
	@$(PYTEST) $(SIDE_BY_SIDE) -m "$(NO_SERVICES) and not slow and not e2e" $(ARGS)

ifndef SEED
SEED := $(shell date +%s)
endif
LAW_SECONDS ?= 60
.PHONY: test-random
test-random: $(VENV)/.ready ## laws over cases that nobody has tried, each its share of LAW_SECONDS=60; prints its seed (again: SEED=123; ARGS="--law-tenth 123": a tenth of them)
	@echo "laws at random; to replay: make test-random SEED=$(SEED) LAW_SECONDS=$$((10 * $(LAW_SECONDS)))"
	@HYPOTHESIS_PROFILE=random $(PYTEST) $(SIDE_BY_SIDE) --hypothesis-seed=$(SEED) --law-seconds=$(LAW_SECONDS) -m hypothesis tests/laws $(ARGS)

.PHONY: test-spark
test-spark: build/spark-classes.jsa jars/kafka/.complete jars/spark-kafka/.complete ## what starts Spark, alone or as a cluster
	@echo "test: Spark"; $(PYTEST) --numprocesses=2 --dist=loadgroup -m spark tests/spark tests/e2e $(ARGS)

.PHONY: test-browser
test-browser: $(VENV)/.ready page ## the page in a browser (needs Chromium)
	@echo "test: the page in a browser"; $(PYTEST) tests/browser $(ARGS)

.PHONY: test-dags
test-dags: build/spark-classes.jsa $(AIRFLOW_VENV)/.ready ## what needs Airflow
	@echo "test: DAGs, in $(AIRFLOW_VENV)"; $(PYTEST_DAGS) $(ARGS)

.PHONY: test-airflow
test-airflow: build/spark-classes.jsa $(AIRFLOW_VENV)/.ready ## a whole Airflow on PostgreSQL: REST, backfills, kill -9, pages (needs PostgreSQL and Chromium)
	@echo "test: Airflow on PostgreSQL"; $(BIN)/python -m pytest tests/airflow $(ARGS)

# Faults and mutants run a copy of the code, or none of it, and pythons install the wheel: the others import what lies here.
DEEP := faults kills histories laws pythons replay-golden mutants soak shape
TOOL = $(firstword $(ARGS))
REST = $(wordlist 2,$(words $(ARGS)),$(ARGS))
LAW_NOTES ?= build/laws.jsonl

.PHONY: deep
deep: $(VENV)/.ready jars/python/.complete ## hours of faults, kills, histories, laws (a thousand cases of each, on from LAW_NOTES), pythons, replay-golden, mutants, soak; shape (the code in figures): ARGS="histories --count 40"
	$(if $(filter $(DEEP),$(TOOL)),,$(error ARGS: begin with one of: $(DEEP)))
ifeq ($(firstword $(ARGS)),laws)
	@mkdir -p $(dir $(LAW_NOTES))
	@HYPOTHESIS_PROFILE=deep nice -n 15 $(PYTEST) -p no:xdist --law-notes=$(LAW_NOTES) -m hypothesis tests/laws $(REST)
else
	@$(if $(filter faults mutants pythons shape,$(TOOL)),,PYTHONPATH=$(CURDIR)) $(BIN)/python tools/$(subst -,_,$(TOOL)).py $(REST)
endif

# --- locks and the table of proofs --------------------------------------------------------------------------------------

.PHONY: lock
lock: $(VENV)/.bootstrapped ## lock again after a change in requirements/*.in (newest versions: make lock ARGS=--upgrade)
	@$(BIN)/python tools/lock.py $(ARGS)

COLLECT := --collect-only --quiet --quiet --no-header -W ignore
MARKS := $(VENV)/spec-marks.json $(AIRFLOW_VENV)/spec-marks.json

.PHONY: marks
marks: $(VENV)/.ready $(AIRFLOW_VENV)/.ready
	@$(PYTEST) $(COLLECT) --spec-marks=$(VENV)/spec-marks.json tests > $(VENV)/collected.txt || { cat $(VENV)/collected.txt; exit 1; }
	@$(PYTEST_DAGS) $(COLLECT) --spec-marks=$(AIRFLOW_VENV)/spec-marks.json > $(VENV)/collected.txt || { cat $(VENV)/collected.txt; exit 1; }

WRITTEN := grammar settings commands api combinations decisions coverage
CHOSEN = $(or $(filter-out -%,$(ARGS)),$(WRITTEN))

.PHONY: generate
generate: $(VENV)/.ready $(if $(filter coverage,$(CHOSEN)),marks) ## write what is made from the code: pages of docs/, comments of conf/, schemas, the parser's table (ARGS="grammar settings": only these; ARGS=site: docs/ as a site in site/)
	$(if $(filter-out $(WRITTEN) site,$(CHOSEN)),$(error ARGS: choose from: $(WRITTEN) site))
	@for page in $(filter-out coverage site,$(CHOSEN)); do $(BIN)/python tools/$$page.py || exit 1; done
	@$(if $(filter coverage,$(CHOSEN)),$(BIN)/python tools/coverage.py $(MARKS))
	@$(if $(filter site,$(CHOSEN)),$(BIN)/zensical build --clean --strict)

.PHONY: release
release: $(VENV)/.ready page ## the wheel and its sources in dist/, looked at; with VERSION=1.2.3 first a release of what CHANGELOG.md lists as unreleased
ifdef VERSION
	@$(BIN)/python tools/release.py $(VERSION)
	@$(EDITABLE) --python $(BIN)/python
endif
	@rm -rf dist
	@$(UV) build --quiet --no-build-isolation --python $(BIN)/python --out-dir dist
	@$(BIN)/python -m twine check --strict dist/*.whl dist/*.tar.gz

# --- to run ------------------------------------------------------------------------------------------------------------

.PHONY: demo
demo: setup ## set up, then the whole pipeline on Helsinki: layers, regions, stream, changes, compaction, quality report; in a terminal it ends with the live page (ARGS=page: the page alone)
	@PYTHONPATH=$(CURDIR) $(BIN)/python demo/$(if $(filter page,$(ARGS)),live.py,run.py) $(filter-out page,$(ARGS))

.PHONY: up
up: $(VENV)/.ready $(AIRFLOW_VENV)/.ready jars/.complete ## Airflow on PostgreSQL on this machine, with vehicles that move, until make down (needs PostgreSQL)
	@PYTHONPATH=$(CURDIR) $(BIN)/python demo/up.py $(ARGS)

.PHONY: down
down: $(VENV)/.ready ## end what make up started, to the last process
	@PYTHONPATH=$(CURDIR) $(BIN)/python demo/down.py

.PHONY: bench
bench: $(VENV)/.ready jars/.complete ## measure; the figures go to bench/results as JSON
	@$(BIN)/python bench/run.py $(ARGS)

.PHONY: clean
clean: ## remove what runs and checks leave behind (environments and jars stay; they go with: rm -rf .venv .venv-airflow jars)
	@[ ! -d demo/up ] || $(MAKE) --no-print-directory down
	@rm -rf demo/up demo/home demo/airflow demo/report.html bench/work build dist *.egg-info spark-warehouse metastore_db derby.log
	@rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -not -path './.venv*' -prune -exec rm -rf {} +
