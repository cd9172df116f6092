# `make run` starts Sederunt, `make test` proves it. Both need Python 3.11 or newer, and make.

PYTHON ?= $(shell for name in python3.13 python3.12 python3.11 python3.14 python3; do \
	"$$name" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' \
	>/dev/null 2>&1 && { echo "$$name"; break; }; done)
UV_VERSION := 0.13.9
BIN := .venv/bin
RUN := $(BIN)/python
# Two processes of tests; files stay whole, so that a server is started once for each.
WORKERS_OF_TESTS ?= 2
PYTEST := $(RUN) -m pytest -q -n $(WORKERS_OF_TESTS) --dist loadfile --no-loadscope-reorder
# So that a killed make takes the server with it, where the system can do that.
WITH_MAKE := $(shell command -v setpriv >/dev/null 2>&1 && echo setpriv --pdeathsig TERM --)

export UV_PYTHON_DOWNLOADS := never
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYTHONUNBUFFERED := 1
unexport VIRTUAL_ENV

.PHONY: run test quick check proof lint types lock format help

help:
	@echo "make run     start Sederunt (PORT, SEDERUNT_HOME, WEB, WORKERS, DATABASE_URL, REDIS_URL)"
	@echo "make test    all tests          make quick   those that take under a minute"
	@echo "make check   tests, types, style, contracts: what CI runs"
	@echo "make proof   timing, chaos and long runs      make lock    renew uv.lock"

run: .venv/.installed
	@exec $(WITH_MAKE) $(RUN) -m config.supervisor

test: .venv/.installed
	$(PYTEST)

quick: .venv/.installed
	$(RUN) -m ruff check -q .
	$(PYTEST) -m "not slow and not proof"

check: lint types test

lint: .venv/.installed
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -c 'from importlinter.cli import lint_imports_command as run; run()'

types: .venv/.installed
	SEDERUNT_ENV=test DATABASE_URL=postgresql://types@localhost/none $(RUN) -m mypy .

proof: .venv/.installed
	$(RUN) -m pytest -q -n 0 -m "proof and alone"
	$(RUN) -m pytest -q -n $(WORKERS_OF_TESTS) --dist load --maxschedchunk 1 -m "proof and not alone"

format: .venv/.installed
	$(RUN) -m ruff check --fix-only -q .
	$(RUN) -m ruff format .

lock: .venv/.installed
	$(BIN)/uv lock

# uv reads the lock's own addresses; where only pip knows a mirror, pip installs the same versions.
.venv/.installed: uv.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "Sederunt needs Python 3.11 or newer with its venv module:" \
		"for example apt-get install python3 python3-venv" >&2; exit 1; }
	@test -x $(RUN) && $(RUN) -c 'import sys, pip; sys.exit(sys.version_info < (3, 11))' \
		2>/dev/null || "$(PYTHON)" -m venv --clear .venv
	@echo "Installing the packages of uv.lock into .venv"
	@$(RUN) -m pip install -q uv==$(UV_VERSION)
	@$(BIN)/uv sync -q --frozen --inexact || { \
		$(BIN)/uv export -q --frozen --no-emit-project -o .venv/requirements.txt && \
		$(RUN) -m pip install -q -r .venv/requirements.txt; }
	@touch $@
