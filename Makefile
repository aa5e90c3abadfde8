# Needs python3 (3.10+) and make; builds everything else itself, from constraints.txt.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PYTEST := $(BIN)/python -m pytest
SHELL_FILES = $(shell git ls-files '*.sh')

.PHONY: help test check format lab lab-setup demo screens bench soak clean

help: ## what there is
	@sed -n 's/^\([a-z-]*\):.*## /\1: /p' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Python 3.10 or newer is needed")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -qq --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

test: $(STAMP) lab-setup ## everything, on the lab droplet where it can be built
	$(PYTEST) -m 'not lab and not slow' -n auto --dist loadfile
	$(PYTEST) -m 'lab and not slow' -n 2 --dist loadfile

check: $(STAMP) ## ruff, format, mypy strict, import-linter, shellcheck
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/shellcheck $(SHELL_FILES)

format: $(STAMP) ## put the code into its form
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lab-setup: $(STAMP) ## what the lab needs on this machine (root on Debian; says what it installs)
	$(BIN)/python -m tests.lab setup

lab: lab-setup ## keep one lab droplet running, and print how to reach it
	$(BIN)/python -m tests.lab up

demo: $(STAMP) ## the console on an embedded practice droplet; fetches a real Triton where it can run one
	@$(BIN)/python -m console.demo.wheel
	@$(BIN)/python -m console demo

screens: $(STAMP) ## every screen of the demo as pictures, for README (two minutes)
	DROPLET_CONSOLE_DEMO_TRITON=none $(BIN)/python -m pictures docs/pictures

bench: lab-setup ## one figure per claim, each a ratio
	$(BIN)/python -m benchmarks

soak: lab-setup ## the long proofs
	$(PYTEST) -m slow --timeout 3600

clean: ## remove the virtual environment and the caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
