# Everything starts from a machine with Python 3.11 and make; nothing is installed by hand.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PORT ?= 8080

.PHONY: demo test test-core lint types unit coverage bench docs clean

demo: $(VENV)/.runtime
	@exec $(BIN)/twistd --nodaemon --pidfile= monrest --demo --port $(PORT)

# Types are checked beside the tests, and what is wrong with them is said after these.
test: $(VENV)/.tools lint
	@$(MAKE) --no-print-directory types >$(VENV)/types.txt 2>&1 & types=$$!; \
	$(MAKE) --no-print-directory unit; unit=$$?; \
	wait $$types; types=$$?; cat $(VENV)/types.txt; exit $$((unit + types))

lint: $(VENV)/.tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/.tools
	$(BIN)/mypy

# Modules are compiled once, also where the environment says that they are not to be kept.
unit: export PYTHONDONTWRITEBYTECODE =
unit: $(VENV)/.tools
	sh tests/install-cores.sh || [ -z "$$MONREST_CI" ]
	sh tests/fetch-samples.sh || [ -z "$$MONREST_CI" ]
	TMPDIR="$$(sh tests/scratch.sh)" $(BIN)/python -m pytest -q \
	    --numprocesses $$(($$(nproc) * 2 + 1)) --dist loadfile --no-loadscope-reorder

# Which lines and branches the tests reach, in every process: a table, and the whole in htmlcov/.
coverage: $(VENV)/.tools
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -q --numprocesses $$(($$(nproc) * 2 + 1)) --dist loadfile \
	    --no-loadscope-reorder $(TESTS); status=$$?; \
	$(BIN)/coverage combine --quiet && $(BIN)/coverage html --quiet && $(BIN)/coverage report; exit $$status

# Against a core that is there already: SOCKET=unix:PATH or tcp:HOST:PORT (docs/guide.md).
test-core: $(VENV)/.tools
	@[ -n "$(SOCKET)" ] || { echo "which core? make test-core SOCKET=unix:/run/naemon/live"; exit 2; }
	MONREST_CORE='$(SOCKET)' MONREST_CORE_COMMANDS='$(COMMANDS)' MONREST_CORE_HOSTS='$(value HOSTS)' \
	MONREST_CORE_CONFIG='$(CONFIG)' $(BIN)/python -m pytest -q tests/live tests/api/test_pushdown_columns.py
	@[ -z "$(BENCH)" ] || $(BIN)/python -m bench.core '$(SOCKET)'

bench: $(VENV)/.tools
	$(BIN)/python -m bench

docs: $(VENV)/.runtime
	$(BIN)/python -m monrest.daemon.reference > docs/api.md
	$(BIN)/python -m monrest.daemon.paths > monrest/cli/paths.txt
	$(BIN)/python -m monrest.cli.manpage > docs/monrest.1

clean:
	rm -rf $(VENV) .samples .coverage* htmlcov build dist *.egg-info .mypy_cache .ruff_cache .hypothesis .import_linter_cache

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: $(VENV)/bin/python setup.py
	$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/.tools: $(VENV)/.runtime
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[test]'
	touch $@
