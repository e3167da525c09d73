# Everything a newcomer or CI calls. Needs Python 3.11+, make and the package registry; what needs more says so.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
.DEFAULT_GOAL = help
unexport PYTHONDONTWRITEBYTECODE # what is compiled is kept: compiling the tests takes a tenth of their time

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  %-22s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/runtime: requirements/runtime.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed; set PYTHON=") if sys.version_info < (3, 11) else None'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/runtime.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/dev: requirements/dev.txt $(VENV)/runtime
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@touch $@

install: $(VENV)/runtime ## create .venv with flux-resourceset and flux-resourceset-cli

demo: install ## serve the demo fleet on 127.0.0.1:8080 until Ctrl-C
	@$(BIN)/python demo.py

# for whatever needs nothing but Python
ORDINARY = -q -n 2 -p no:schemathesis --ignore tests/openapi/test_schemathesis.py

# MEASURE=1 records which lines the tests reach, for coverage-report
ifdef MEASURE
export COVERAGE_FILE = $(CURDIR)/.coverage
export COVERAGE_PROCESS_START = $(CURDIR)/pyproject.toml
endif

test: $(VENV)/dev ## run the tests, in less than two minutes
	$(BIN)/pytest $(ORDINARY) -m "not thorough and not fault and not long"

test-long: $(VENV)/dev ## run the long tests: every example of the documentation, several processes
	$(BIN)/pytest $(ORDINARY) -m "long and not thorough and not fault"

coverage: $(VENV)/dev ## run the tests and the long ones, and show which lines of the product none of them reaches
	rm -rf .coverage .coverage.*
	$(MAKE) test MEASURE=1
	$(MAKE) test-long MEASURE=1
	$(MAKE) coverage-report

coverage-report: $(VENV)/dev ## show which lines no test reached in the runs with MEASURE=1
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --skip-covered
	$(BIN)/python tests/unreached.py

test-postgres: $(VENV)/dev ## run the tests of servers and of several processes on PostgreSQL
	TEST_STORE=postgres $(BIN)/pytest $(ORDINARY) -m "not thorough and not fault and not sqlite" tests/api tests/processes

test-pythons: ## run the tests on every Python from 3.11 to 3.14 that is on the PATH or of pyenv, each in a .venv-3.x of its own
	@$(PYTHON) tests/pythons.py $(MAKE)

faults: $(VENV)/dev ## break real servers, databases, disks and connections under load, check every answer, and print how long each took to recover
	$(BIN)/pytest -q -n 2 -p no:schemathesis tests/faults -m "fault and not thorough"

test-thorough: $(VENV)/dev ## run those that take longer: Schemathesis, planted faults, the render engine against Flux Operator's own
	$(BIN)/pytest -q -n 2 -m thorough

mutants: $(VENV)/dev ## plant faults one at a time and name those that no test notices (part of test-thorough); ARGS=--all plants every one
	PYTHONPATH=tests $(BIN)/python -m mutants.run $(ARGS)

lint: $(VENV)/dev ## style, types, import layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	MYPYPATH=src:tests $(BIN)/mypy --config-file /dev/null --strict --explicit-package-bases tests/e2e
	$(BIN)/lint-imports
	$(BIN)/python docs/releases.py

format: $(VENV)/dev ## put the code into shape
	$(BIN)/ruff check --fix --quiet .
	$(BIN)/ruff format .

generate: $(VENV)/dev ## write openapi/openapi.yaml and the generated parts of the docs
	$(BIN)/python docs/generate.py

bench: $(VENV)/dev ## measure, against named anchors (uses nginx and wrk where they are)
	$(BIN)/python bench/poll.py
	$(BIN)/python bench/workers.py
	$(BIN)/python bench/cli.py
	$(BIN)/python bench/batch.py
	$(BIN)/python bench/stall.py
	$(BIN)/python bench/plan.py
	$(BIN)/python bench/apply.py
	$(BIN)/python bench/feed.py
	$(BIN)/python bench/history.py
	$(BIN)/python bench/herd.py
	$(BIN)/python bench/steady.py
	$(BIN)/python bench/growth.py
	$(BIN)/python bench/fleet.py

performance: $(VENV)/dev ## run all of these in a quiet hour and write docs/performance.md; ARGS="--only poll" measures some anew
	$(BIN)/python bench/performance.py $(ARGS)
.PHONY: performance

lock: $(VENV)/runtime ## renew the pinned requirement files
	$(BIN)/pip install --quiet uv
	for name in runtime dev; do $(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	  --no-header --no-annotate --no-emit-index-url --no-emit-find-links requirements/$$name.in -o requirements/$$name.txt; done

# databases (data/, var/) and the tools of make e2e, which take half an hour to build, stay
clean: ## remove what was built here: environments, caches, coverage, dist; the kind cluster stays (make kind-delete)
	rm -rf .venv .venv-3.* $(VENV) build dist src/*.egg-info *.egg-info .coverage .coverage.* htmlcov
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .grimp_cache .schemathesis
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +

.PHONY: help install demo test test-long coverage coverage-report test-postgres test-pythons faults test-thorough mutants lint format generate bench lock clean

e2e-tools: ## build Flux Operator, Flux and a Kubernetes control plane from Go modules (needs Go; half an hour, once)
	tests/e2e/tools/build.sh

e2e: $(VENV)/dev e2e-tools ## the real Flux Operator against the real server (needs Go and openssl)
	$(BIN)/python -m pytest tests/e2e -q

lint-workflows: ## check the workflow files (needs Go)
	tests/e2e/tools/build.sh actionlint
	$${E2E_HOME:-$${XDG_CACHE_HOME:-$$HOME/.cache}/flux-resourceset-e2e}/bin/actionlint \
	  .github/workflows/*.y*ml $$(git ls-files 'examples/**/.github/workflows/*')

.PHONY: e2e-tools e2e lint-workflows

include Makefile.kind
