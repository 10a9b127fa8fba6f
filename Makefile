# Two commands do everything from nothing: make demo, make test.
# They need Python >= 3.11, a C++ compiler and make, and keep to themselves in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NATIVE := CMakeLists.txt pyproject.toml $(wildcard cpp/* cpp/*/*)

.PHONY: demo test test-gpu lint coverage build docs wheel wheel-aarch64 cross bench fuzz sanitize large soak damage clean help

help:
	@echo "make demo   binarize real GloVe vectors and look at them"
	@echo "make test   check style and types, run the tests"
	@echo "make docs   build the docs site into site/; warnings are errors"
	@echo "make test-gpu  the tests that need PyTorch, on a GPU where there is one"
	@echo "make bench  time reading, binarizing, starting and searching, as ratios"
	@echo "make fuzz sanitize large soak damage   the long runs behind docs/trust.md"
	@echo "make wheel  the sdist and the wheel, audited, installed elsewhere and asked there"
	@echo "make wheel-aarch64 cross   the same for another processor; the core for all platforms"
	@echo "make coverage   what the tests run, and the lines they do not"
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
	$(BIN)/python -m pip install --quiet --group test --group lint --group docs
	@touch $@

demo: $(VENV)/demo
	$(BIN)/embits demo

lint: $(VENV)/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

# The browser page's tests need Node.js and Chromium; where they are missing, pytest says so.
tests/page/node_modules: tests/page/package-lock.json
	@if command -v npm >/dev/null; then \
	  npm ci --prefix tests/page --no-audit --no-fund --silent && touch $@ || \
	    echo "note: npm could not install, so the browser tests are skipped"; \
	else echo "note: there is no npm, so the browser tests are skipped"; fi

test: lint tests/page/node_modules
	$(BIN)/python -m pytest -q

docs: $(VENV)/test
	$(BIN)/python -m mkdocs build --strict
	@echo "the docs are in site/: open site/index.html"

# Draw the figures of the docs again from the stored runs, and write the README's numbers.
figures: $(VENV)/test $(VENV)/demo
	for name in results quality near_lossless search method; do \
	  $(BIN)/python docs/figures/$$name.py || exit 1; done
	$(BIN)/python benchmarks/readme_numbers.py

# PyTorch is several gigabytes, so these are not part of `make test`.
test-gpu: $(VENV)/test
	$(BIN)/python -m pip install --quiet --editable '.[gpu]' triton
	$(BIN)/python -m pytest -q tests/unit/search/test_gpu.py tests/unit/coders/test_near_lossless.py

# Lines and branches, the command line's processes too; it names what is not run. The tests left out
# forbid their programs to write files, which measuring them does.
coverage: $(VENV)/test tests/page/node_modules
	$(BIN)/python -m pip install --quiet "pytest-cov>=6" "coverage>=7.10"
	$(BIN)/python -m pytest -q --cov --cov-report=term-missing:skip-covered \
	  --deselect tests/trust/test_cli.py::test_a_file_that_does_not_fit_is_named_in_one_line

wheel: $(BIN)/python
	$(BIN)/python -m pip install --quiet --group wheel
	PATH="$(CURDIR)/$(BIN):$$PATH" stress/wheel.sh $(BIN)/python

# The native core for every platform that has wheels, by a compiler that knows them all.
cross: $(BIN)/python
	$(BIN)/python -m pip install --quiet ziglang
	$(BIN)/python stress/cross.py

wheel-aarch64:
	stress/aarch64_wheel.sh $(PYTHON)

bench: $(VENV)/test $(VENV)/demo
	$(BIN)/python -m pip install --quiet --editable '.[faiss,gensim]'
	for name in read_text binarize startup hamming_search; do \
	  echo "== benchmarks/$$name.py"; $(BIN)/python benchmarks/$$name.py || exit 1; done

# The long runs of docs/trust.md.
fuzz: $(VENV)/test
	$(BIN)/python -m pip install --quiet atheris
	$(BIN)/python fuzz/run.py --seconds 60

sanitize: $(VENV)/test
	$(BIN)/python -m pip install --quiet cmake nanobind
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python stress/sanitize.py

large: $(VENV)/built
	$(BIN)/python stress/large.py

soak: $(VENV)/built
	$(BIN)/python stress/soak.py --write

damage: $(VENV)/test
	$(BIN)/python -m pip install --quiet faiss-cpu usearch
	$(BIN)/python benchmarks/damage.py --write

clean:
	rm -rf $(VENV) build dist site embits-demo tests/page/node_modules .pytest_cache .mypy_cache .ruff_cache .hypothesis
