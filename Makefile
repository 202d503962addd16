# `make` says what there is. Everything is set up on first use and left alone after that.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PORT ?= 8501
N ?= 100000
PYTEST_ARGS ?=
TORCH_PIP_ARGS ?=

VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check --quiet
TOOLS := $(VENV)/tools

# A stamp is newer than the files it depends on when what they ask for is installed.
APP_STAMP := $(VENV)/.stamp-app
TEST_STAMP := $(VENV)/.stamp-test
TOOLS_STAMP := $(TOOLS)/.stamp

# `make lock` asks the public index alone, so that no machine's own settings reach the lock files.
COMPILE := env -u PIP_FIND_LINKS -u PIP_EXTRA_INDEX_URL PIP_CONFIG_FILE=/dev/null \
	$(TOOLS)/bin/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-header \
	--no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-emit-options

.PHONY: help
help: ## say what each target does
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(APP_STAMP): requirements.lock pyproject.toml scripts/make_venv.sh
	@scripts/make_venv.sh $(VENV)
	@echo "Installing what the planner and its app need ..."
	@$(PIP) install --require-hashes -r requirements.lock
	@$(PIP) install --no-build-isolation --no-deps -e .
	@touch $@

$(TEST_STAMP): requirements-dev.lock requirements-torch.txt $(APP_STAMP)
	@echo "Installing what the tests need ..."
	@$(PIP) install --require-hashes -r requirements-dev.lock
ifndef WITHOUT_TORCH
	@echo "Installing torch for the oracle ..."
	@$(PIP) install $(TORCH_PIP_ARGS) -r requirements-torch.txt
endif
	@touch $@

$(TOOLS_STAMP): requirements-tools.txt $(APP_STAMP)
	@scripts/make_venv.sh $(TOOLS)
	@$(TOOLS)/bin/python -m pip --disable-pip-version-check --quiet install -r requirements-tools.txt
	@touch $@

.PHONY: setup
setup: $(APP_STAMP) ## set up .venv with the planner and its app
	@echo "Ready: .venv/bin/planner --help"

.PHONY: app
app: $(APP_STAMP) ## serve the app on this machine (PORT=8501)
	@exec $(VENV)/bin/streamlit run app.py --server.port $(PORT)

.PHONY: test
test: $(TEST_STAMP) ## check and test everything (PYTEST_ARGS="..." narrows it)
	@scripts/ensure_chrome.sh
	@$(MAKE) --no-print-directory lint
	@$(PY) -m pytest $(PYTEST_ARGS)

.PHONY: lint
lint: $(TEST_STAMP) ## ruff on everything, mypy --strict on planner_core
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/mypy

.PHONY: bench
bench: $(TEST_STAMP) ## print how fast it is, as figures and ratios
	@scripts/ensure_chrome.sh
	@$(PY) -m bench

.PHONY: fuzz
fuzz: $(TEST_STAMP) ## feed it N mutated files (N=100000)
	@$(PIP) install -r requirements-fuzz.txt || echo "atheris can't be installed here: fuzzing without coverage"
	@$(PY) -m fuzz --count $(N)

.PHONY: oracle
oracle: $(TEST_STAMP) ## compare with torch on every architecture transformers can build
	@$(PY) -m pytest -m oracle $(PYTEST_ARGS)
	@$(PY) -m scripts.oracle_all

.PHONY: screenshots
screenshots: $(TEST_STAMP) ## redraw docs/screenshots/
	@scripts/ensure_chrome.sh
	@$(PY) -m scripts.screenshots

.PHONY: audit
audit: $(TOOLS_STAMP) ## look the locked versions up among known vulnerabilities (needs the public index)
	@$(TOOLS)/bin/pip-audit --strict --disable-pip --require-hashes -r requirements-dev.lock

.PHONY: licences
licences: $(TEST_STAMP) ## rewrite docs/licences.md from what is installed
	@$(PY) -m scripts.licences > docs/licences.md.new
	@mv docs/licences.md.new docs/licences.md

.PHONY: lock
lock: $(TOOLS_STAMP) ## rewrite the lock files from requirements*.txt
	@$(COMPILE) -o requirements.lock requirements.txt
	@$(COMPILE) -c requirements.lock -o requirements-dev.lock requirements-dev.txt

.PHONY: test-oldest
test-oldest: ## test with the oldest supported versions, in a throwaway venv
	@scripts/test_with.sh oldest

.PHONY: test-newest
test-newest: ## test with the newest versions the index has, in a throwaway venv
	@scripts/test_with.sh newest

.PHONY: clean
clean: ## remove .venv and every cache
	@rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist *.egg-info
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
