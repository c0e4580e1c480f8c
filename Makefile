# make run: install, start everything, begin the demo. make test: all tests but the longest. See README.md.
# Another interpreter: make PYTHON=python3.13 …

PYTHON = python3
VENV = .venv
BIN = $(VENV)/bin
PIP = $(BIN)/python -m pip --disable-pip-version-check
READY = $(VENV)/.ready
READY_DEV = $(VENV)/.ready-dev
# one more than two cores: a worker that runs whole homes mostly waits
WORKERS = 3
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder
FIND_PYTHON = for python in $(PYTHON) python3.13 python3.12 python3.11; do \
	if $$python -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; \
	then echo $$python; exit 0; fi; done; \
	echo "IntraSkill needs Python 3.11 or newer with the venv module, and found none." >&2; \
	echo "Install one, or name it: make PYTHON=/path/to/python3.12 ..." >&2; exit 1

.PHONY: setup setup-dev run test test-long test-postgres lint types e2e bench soak clean

setup: $(READY)

setup-dev: $(READY_DEV)

$(READY): requirements.txt
	@python=$$($(FIND_PYTHON)) && { test -x $(BIN)/python || $$python -m venv $(VENV); }
	@echo "Installing Python packages into $(VENV): one to three minutes, once …"
	@$(PIP) install --quiet -r requirements.txt
	@touch $(READY)

$(READY_DEV): $(READY) requirements/dev.txt
	@echo "Installing what tests and checks need into $(VENV), once …"
	@$(PIP) install --quiet -r requirements/dev.txt
	@touch $(READY_DEV)

run: setup
	@exec $(BIN)/python manage.py up --demo

test: setup-dev
	$(PYTEST) -m 'not long'

# What takes minutes: stops and faults of whole homes, every window of axe-core.
test-long: setup-dev
	$(PYTEST) -m long

# Every test that works with a database, on PostgreSQL: DATABASE_URL=postgres://… make test-postgres,
# or .ci/postgres. The trainer knows no database, so its tests are not even read. LESS leaves
# markers out, MORE asks only for some.
test-postgres: setup-dev
	$(PYTEST) -m 'database and not once$(LESS:%= and not %)$(if $(MORE), and ($(MORE)))' --ignore=tests/trainer --ignore=tests/contracts

lint: setup-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache

types: setup-dev
	$(BIN)/mypy

e2e: setup-dev
	$(BIN)/python -m pytest -m e2e

bench: setup-dev
	for file in $$(grep -l __main__ benchmarks/*.py); do \
	$(BIN)/python -m benchmarks.$$(basename $$file .py) --json || exit 1; done

soak: setup-dev
	INTRASKILL_SOAK_KILLS=200 $(BIN)/python -m pytest -m chaos -s

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
