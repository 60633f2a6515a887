# Every target sets itself up: it creates .venv when missing and reinstalls only when
# pyproject.toml or constraints.txt changed.
PYTHON ?= python3
BIN := .venv/bin
PY := $(BIN)/python
INSTALL := $(BIN)/pip install -qq --constraint constraints.txt
DEPS := pyproject.toml constraints.txt
RECENT := import sys; sys.exit(sys.version_info < (3, 11))

.PHONY: help train test lint format bench notebooks docs figures results web clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "%-12s%s\n", $$1, $$2}' Makefile

.venv/.fast: $(DEPS)
	@$(PY) -c 'import pip; $(RECENT)' 2>/dev/null || { \
	  $(PYTHON) -c '$(RECENT)' || { echo "error: $(PYTHON) is not Python 3.11 or newer; try make PYTHON=python3.12"; exit 1; }; \
	  $(PYTHON) -m venv --clear .venv; }
	@echo "installing PyTorch and the package into .venv (once)"
	@$(INSTALL) --editable '.[fast]'
	@touch $@

.venv/.dev: .venv/.fast
	@echo "installing the test, documentation and lint tools into .venv (once)"
	@$(INSTALL) --editable '.[dev]'
	@touch $@

train: .venv/.fast  ## train the transpose network on the CPU, then show its accuracy from 4x4 to 256x256
	@$(PY) -m mse_fast.train transpose --out runs/transpose
	@$(PY) -m mse_fast.evaluate runs/transpose --sizes 4 8 16 32 64 128 256 --plot runs/transpose/accuracy.png

test: .venv/.dev  ## run every test
	@$(PY) -m pytest -n 2 --dist worksteal -q

lint: .venv/.dev  ## ruff (format and lint) and mypy
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

format: .venv/.dev  ## let ruff mend what it can
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: .venv/.dev  ## measure speed and memory against the GEMM limit and the baselines
	@$(PY) -m mse_fast.bench

figures: .venv/.dev  ## redraw every figure of the README and the docs
	@$(PY) -m mse_ref.draw --out docs/figures

results: .venv/.dev  ## rebuild docs/results.md and its figures from the run records
	@$(PY) -m mse_fast.results

notebooks: .venv/.dev  ## execute the notebooks and store their outputs
	@$(PY) notebooks/build.py

web: .venv/.fast  ## write the networks of the browser demo from the zoo
	@$(PY) -m mse_fast.export_web

docs: .venv/.dev  ## build the documentation site, warnings are errors
	@$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

clean:  ## remove the environment and what was built
	rm -rf .venv build dist docs/_build .pytest_cache .mypy_cache .ruff_cache
