# Everything starts from a machine with Python 3.11 and make; nothing is installed by hand.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PORT ?= 8080

.PHONY: demo test plan real test-core lint types unit coverage bench examples contract docs book pages deb clean

# The book is built beside it, where it is not there yet: /mon/docs/book has it half a minute later.
demo: $(VENV)/.book
	@[ -e docs/_build/index.html ] || nice $(MAKE) book >/dev/null 2>&1 &
	@exec $(BIN)/twistd --nodaemon --pidfile= monrest --demo --port $(PORT)

# System packages are installed beside those of Python. Types are checked beside the tests, and what is
# wrong with them is printed after these.
test: plan
	@$(MAKE) --no-print-directory --jobs=2 $(VENV)/.tools real
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory types >$(VENV)/types.txt 2>&1 & types=$$!; \
	$(MAKE) --no-print-directory unit; unit=$$?; \
	wait $$types; types=$$?; cat $(VENV)/types.txt; exit $$((unit + types))

# Before anything else: what will be installed on the machine itself.
plan:
	@sh tests/install-cores.sh --plan

lint: $(VENV)/.tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/.tools
	$(BIN)/mypy

# Real cores and other programs, and the samples of configuration that come with them.
real:
	sh tests/install-cores.sh || [ -z "$$MONREST_CI" ]
	sh tests/fetch-samples.sh || [ -z "$$MONREST_CI" ]

# Modules are compiled once, also where the environment says that they are not to be kept.
unit coverage bench: export PYTHONDONTWRITEBYTECODE =
unit: $(VENV)/.tools real
	TMPDIR="$$(sh tests/scratch.sh)" $(BIN)/python -m pytest -q \
	    --numprocesses $$(($$(nproc) * 2 + 2)) --dist loadfile --no-loadscope-reorder

# Which lines and branches the tests reach, in every process: a table, and the whole in htmlcov/.
coverage: $(VENV)/.tools
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -q --numprocesses $$(($$(nproc) * 2 + 2)) --dist loadfile \
	    --no-loadscope-reorder $(TESTS); status=$$?; \
	$(BIN)/coverage combine --quiet && $(BIN)/coverage html --quiet && $(BIN)/coverage report; exit $$status

# Against a core that is there already: SOCKET=unix:PATH or tcp:HOST:PORT (docs/guide/own-core.md).
test-core: $(VENV)/.tools
	@[ -n "$(SOCKET)" ] || { echo "which core? make test-core SOCKET=unix:/run/naemon/live"; exit 2; }
	MONREST_CORE='$(SOCKET)' MONREST_CORE_COMMANDS='$(COMMANDS)' MONREST_CORE_HOSTS='$(value HOSTS)' \
	MONREST_CORE_CONFIG='$(CONFIG)' $(BIN)/python -m pytest -q tests/live tests/api/test_pushdown_columns.py
	@[ -z "$(BENCH)" ] || $(BIN)/python -m bench.core '$(SOCKET)'

bench: $(VENV)/.tools
	$(BIN)/python -m bench

# Requests of the examples are sent to a demo, and its answers kept.
examples: $(VENV)/.tools
	$(BIN)/python -m tests.live.harness.documented

# The golden files of what a user sees, where it changes on purpose: a commit of their own.
contract: $(VENV)/.tools
	$(BIN)/python -m tests.contract

# The book, in docs/_build/index.html and at /mon/docs/book of a daemon; a page that is not right ends it.
docs: pages book

# A daemon that runs sees the whole book or none.
book: $(VENV)/.book
	rm -rf build/book
	$(BIN)/sphinx-build -q -W --keep-going -b html docs build/book
	rm -rf docs/_build && mv build/book docs/_build

# The pages that are made from declarations.
pages: $(VENV)/.runtime
	$(BIN)/python -m monrest.daemon.reference docs/api
	$(BIN)/python -m monrest.daemon.paths > monrest/cli/paths.txt
	$(BIN)/python -m monrest.cli.manpage > docs/monrest.1
	$(BIN)/python -m monrest.daemon.client_rows > monrest/client/rows.py

# A Debian package in dist/, for the Debian and the python3 of this machine; REVISION=2 is its next one.
deb: $(VENV)/.runtime docs
	rm -rf build dist/*.whl
	$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	PIP=$(BIN)/pip sh debian/build.sh dist/monrest-*.whl dist

clean:
	rm -rf $(VENV) .samples docs/_build .coverage* htmlcov build dist *.egg-info .mypy_cache .ruff_cache .hypothesis .import_linter_cache

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: $(VENV)/bin/python setup.py
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[postgresql,reports]'
	touch $@

$(VENV)/.book: $(VENV)/.runtime
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[book]'
	touch $@

# With all of the runtime, for pip takes half a minute each time that it is called.
$(VENV)/.tools: $(VENV)/bin/python setup.py
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[test]'
	touch $(VENV)/.runtime $@
