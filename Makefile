# Two commands do everything from nothing: make demo, make test.
# They need Python >= 3.11, a C++ compiler and make, and keep to themselves in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NATIVE := CMakeLists.txt pyproject.toml $(wildcard cpp/*)

.PHONY: demo test lint build bench clean help

help:
	@echo "make demo   binarize real GloVe vectors and look at them"
	@echo "make test   check style and types, run the tests"
	@echo "make bench  print every number the README states, as ratios"
	@echo "make clean  remove what the others made"

build: $(VENV)/built

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "embits needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"

# Editable: Python changes need no build, changes to the native files build again.
$(VENV)/built: $(BIN)/python $(NATIVE)
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/demo: $(VENV)/built
	$(BIN)/python -m pip install --quiet --editable '.[demo]'
	@touch $@

$(VENV)/test: $(VENV)/built
	$(BIN)/python -m pip install --quiet --group test --group lint
	@touch $@

demo: $(VENV)/demo
	$(BIN)/embits demo

lint: $(VENV)/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(BIN)/python -m pytest -q

bench: $(VENV)/test $(VENV)/demo
	$(BIN)/python -m pip install --quiet --editable '.[faiss,gensim]'
	for file in benchmarks/[a-z]*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

clean:
	rm -rf $(VENV) build dist embits-demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
