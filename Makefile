# The first two targets are the README's two commands; each sets up .venv by itself.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test lab bench soak clean

demo: $(READY)
	$(BIN)/perfkit demo

# Two tests at a time, since most of them wait more than they compute. What measures (soak, bench) runs alone.
test: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest --numprocesses 2 --dist loadfile

# As root, which is usual in a container, Jupyter starts only when told that it may.
lab: $(READY)
	$(BIN)/jupyter lab --notebook-dir=notebooks $(if $(filter 0,$(shell id -u)),--allow-root)

bench: $(READY)
	$(BIN)/pytest -m bench -s tests/bench

# PERFKIT_FIGURES=FOLDER leaves what each promise measured there, one small JSON file a test.
soak: $(READY)
	$(BIN)/pytest -m slow

clean:
	rm -rf .venv

# torch first and alone: pulled in by another package, pip may pick a build of several gigabytes.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt torch
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable .[dev]
	touch $(READY)
