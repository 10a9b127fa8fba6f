# `make demo` and `make test` work in a fresh checkout. They need Python 3.11 or newer, a C++ compiler
# and make. Everything is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NATIVE := CMakeLists.txt pyproject.toml $(wildcard cpp/* cpp/*/*)

.PHONY: demo check test test-gpu lint coverage build docs figures wheel wheel-aarch64 cross bench fuzz \
  sanitize large soak damage kills power mutate clean help

help:
	@echo "make demo       binarize real GloVe vectors and show the results"
	@echo "make check      lint, types and the fast unit tests, in under a minute"
	@echo "make test       everything: lint, types, docs build and all tests"
	@echo "make docs       build the docs site into site/; warnings are errors"
	@echo "make figures    draw the figures of the docs again from stored runs"
	@echo "make bench      time reading, binarizing, starting and searching, as ratios"
	@echo "make coverage   run the tests and list the lines they do not reach"
	@echo "make test-gpu   run the tests that need PyTorch, on a GPU if there is one"
	@echo "make wheel      build, audit and install the sdist and the wheel, then test them"
	@echo "make wheel-aarch64 cross                the same for aarch64; the core for all platforms"
	@echo "make fuzz sanitize large soak damage kills power mutate   the long tests of docs/trust.md"
	@echo "make clean      remove everything the other targets made"

build: $(VENV)/built

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "embits needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"

# An editable install: changes to Python files take effect at once, changes to C++ files rebuild.
$(VENV)/built: $(BIN)/python $(NATIVE)
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

# The same with the vectors of the demo, so that `make demo` in a fresh checkout compiles once.
$(VENV)/demo: $(BIN)/python $(NATIVE)
	$(BIN)/python -m pip install --quiet --editable '.[demo]'
	@test -e $(VENV)/built || touch $(VENV)/built
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

# The tests of the browser page need Node.js and Chromium; pytest skips them where these are missing.
tests/page/node_modules: tests/page/package-lock.json
	@if command -v npm >/dev/null; then \
	  npm ci --prefix tests/page --no-audit --no-fund --silent && touch $@ || \
	    echo "note: npm could not install, so the browser tests are skipped"; \
	else echo "note: there is no npm, so the browser tests are skipped"; fi

# The inner loop: tests/unit on all cores, without tests marked `slow` and those of the command line,
# which start a process each.
check: lint
	$(BIN)/python -m pytest -q -n auto -m "not slow" --ignore=tests/unit/cli tests/unit

test: lint tests/page/node_modules
	$(BIN)/python -m pytest -q -n auto --durations=15

docs: $(VENV)/test
	$(BIN)/python -m mkdocs build --strict
	@echo "built the docs: open site/index.html"

# Draw the figures of the docs again from the stored runs, and write the numbers of the README
# and of the comparison.
figures: $(VENV)/test $(VENV)/demo
	for name in results quality comparison smallest_files search planes method cells text; do \
	  $(BIN)/python docs/figures/$$name.py || exit 1; done
	$(BIN)/python benchmarks/readme_numbers.py
	$(BIN)/python benchmarks/comparison_tables.py

# PyTorch is several gigabytes, so these are not part of `make test`.
test-gpu: $(VENV)/test
	$(BIN)/python -m pip install --quiet --editable '.[gpu]' triton
	$(BIN)/python -m pytest -q tests/unit/search/test_gpu.py tests/unit/coders/test_near_lossless.py

# Line and branch coverage, including the processes that the command-line tests start. The deselected
# tests limit the file size of their processes, and coverage has to write a file there.
coverage: $(VENV)/test tests/page/node_modules
	$(BIN)/python -m pip install --quiet "pytest-cov>=6" "coverage>=7.10"
	$(BIN)/python -m pytest -q --cov --cov-report=term-missing:skip-covered \
	  --deselect tests/trust/test_cli.py::test_a_file_that_does_not_fit_is_named_in_one_line \
	  --deselect tests/integrations/test_sqlite.py::test_a_full_disk_is_an_error_that_names_the_file

wheel: $(BIN)/python
	$(BIN)/python -m pip install --quiet --group wheel
	PATH="$(CURDIR)/$(BIN):$$PATH" stress/wheel.sh $(BIN)/python

# Compile the native core for every platform that has wheels, with zig.
cross: $(BIN)/python
	$(BIN)/python -m pip install --quiet ziglang
	$(BIN)/python stress/cross.py

wheel-aarch64:
	stress/aarch64_wheel.sh $(PYTHON)

bench: $(VENV)/test $(VENV)/demo
	$(BIN)/python -m pip install --quiet --editable '.[faiss,gensim]'
	for name in read_text binarize startup; do \
	  echo "== benchmarks/$$name.py"; $(BIN)/python benchmarks/$$name.py || exit 1; done
	$(BIN)/python benchmarks/hamming_search.py --quick --out build/benchmarks

# The long tests of docs/trust.md.
fuzz: $(VENV)/test
	$(BIN)/python -m pip install --quiet atheris
	$(BIN)/python fuzz/run.py --seconds 60
	$(BIN)/python fuzz/differential.py --seconds 600

sanitize: $(VENV)/test
	$(BIN)/python -m pip install --quiet cmake nanobind
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python stress/sanitize.py

large: $(VENV)/built
	$(BIN)/python stress/large.py

soak: $(VENV)/built
	$(BIN)/python stress/soak.py --write

kills: $(VENV)/built
	$(BIN)/python stress/collection_kills.py --kills 1000

power: $(VENV)/test
	$(BIN)/python -m stress.power --write

mutate: $(VENV)/test
	OPENBLAS_NUM_THREADS=1 $(BIN)/python stress/mutate.py --sample 300

damage: $(VENV)/test
	$(BIN)/python -m pip install --quiet faiss-cpu usearch
	$(BIN)/python benchmarks/damage.py --write

clean:
	rm -rf $(VENV) build dist site embits-demo tests/page/node_modules .pytest_cache .mypy_cache .ruff_cache .hypothesis
