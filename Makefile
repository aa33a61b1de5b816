# Set-up, checks and tests. `make help` lists what there is.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp
# On a terminal pip shows how far it is; elsewhere only what goes wrong.
INSTALL = $(BIN)/python -m pip install --disable-pip-version-check $$(test -t 2 || echo --quiet)

.DEFAULT_GOAL := help
.PHONY: help env check test test-all coverage browser lint format docs lock clean

help: ## say what there is to make
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

env: $(STAMP) ## make .venv from the locked versions and install the project in it, editable

# The stamp is newer than what the environment was made from, so that nothing is done again.
$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Python 3.11 or newer is needed, $(PYTHON) is $$($(PYTHON) --version 2>&1);" \
	    "say which one to use: make env PYTHON=/path/to/python3.11" >&2; exit 69; }
	@echo "env 1/3: $(VENV)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "env 2/3: $$(grep -c '^[a-z].*==' requirements.lock) packages; PySpark is large and is" \
	  "built once, which takes minutes"
	@$(INSTALL) --require-hashes --requirement requirements.lock
	@echo "env 3/3: the project"
	@$(INSTALL) --no-deps --no-build-isolation --editable .
	@touch $(STAMP)

check: env ## run the gate: proofs and conformance of the bundled controller (SEED=7 repeats one)
	$(BIN)/reassure check $(if $(SEED),--seed $(SEED))

# Each file of tests is run by one process: what its tests share is made once. Three processes keep
# two cores busy, as many tests wait for a server. The files come in their order, which has short
# ones at its end, so that no process waits long for the others.
PYTEST = $(BIN)/python -m pytest -q --numprocesses 3 --dist loadfile --no-loadscope-reorder

test: env ## run the tests but the slow ones, which are counted at its end
	$(PYTEST) -m "not slow"

test-all: env ## run all tests, the slow ones too
	$(PYTEST)

coverage: env ## fail where a branch of spec, model or judge is taken by none of their quick tests
	@mkdir -p build
	$(BIN)/coverage run -m pytest -q -m "not slow" tests/spec tests/model tests/judge tests/scenario
	$(BIN)/coverage report

browser: ## install the browser that tests open the explorer's page in, where that is allowed
	@if command -v chromium chromium-browser google-chrome >/dev/null; then exit 0; fi; \
	if ! command -v apt-get >/dev/null; then why="there is no apt-get"; \
	elif [ "$$(id -u)" != 0 ]; then why="only root may install packages"; \
	elif apt-get -q update >/dev/null 2>&1 && \
	  DEBIAN_FRONTEND=noninteractive apt-get -qy install --no-install-recommends chromium \
	    >/dev/null 2>&1; then exit 0; \
	else why="apt-get could not get chromium"; fi; \
	echo "no browser: $$why; the tests that need one are skipped"

lint: env ## check style, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: env ## put the code into the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# What the theme says at each build is left out: that its support ends in May 2027, and that Zensical,
# which reads the same mkdocs.yml, comes after it.
docs: env ## build the site in build/site, and write what is tracked of it anew; takes minutes
	$(BIN)/python docs/generate.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "open build/site/index.html; the search works where it is served:"
	@echo "  $(BIN)/python -m http.server --bind 127.0.0.1 --directory build/site"

lock: ## write requirements.lock anew from pyproject.toml (needs the network)
	$(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip install --quiet 'pip-tools>=7.5'
	build/lock/bin/pip-compile --quiet --generate-hashes --strip-extras --unsafe-package reassure \
	  --extra dev --no-header --no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
	  --output-file requirements.lock pyproject.toml
	@{ echo "# Made by \`make lock\` from pyproject.toml, extra dev included. Do not edit."; \
	  cat requirements.lock; } > build/lock.txt && mv build/lock.txt requirements.lock

clean: ## remove the environment and everything that was built or measured
	rm -rf $(VENV) build dist runs docs/generated
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
