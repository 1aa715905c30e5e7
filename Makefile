# All the set-up there is: `make demo` and `make test` work on a fresh machine with Python 3.11.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: demo test lint docs packages install-check bench campaign minimum parity clean

demo: $(VENV)/.installed
	@$(BIN)/python examples/tour.py

test: $(VENV)/.installed-test lint
	@$(BIN)/python -m pytest -q -n 2 --dist worksteal

lint: $(VENV)/.installed-test
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy

# The site, from docs/ and the public names, offline: build/site/index.html is its first page.
docs: $(VENV)/.installed-docs
	@$(BIN)/python -m docs.site.assemble build/site-source
	@$(BIN)/python -m sphinx -q -W --keep-going -c docs/site -d build/site-cache build/site-source build/site
	@$(BIN)/python -m docs.site.links build/site
	@echo "build/site/index.html"

bench: $(VENV)/.installed
	@$(BIN)/python benchmarks/run.py

# The source distribution and the wheel, in dist/.
packages: $(VENV)/.installed-test
	@$(BIN)/python -c "from hatchling import build; build.build_sdist('dist'); build.build_wheel('dist')"
	@ls dist

# The wheel in fresh environments of every Python that is present, with a smoke suite.
install-check:
	@$(PYTHON) tools/check_install.py

# All paths of random programs against each other; SEED and COUNT choose which and how many.
SEED ?= 1000
COUNT ?= 200
campaign: $(VENV)/.installed-test
	@$(BIN)/python -m pytest -q -n 2 tests/campaign --first-seed $(SEED) --programs $(COUNT) \
		--compositions $(COUNT) --stateful $(COUNT) --interrupts $(COUNT) --forks $(COUNT)

# The least versions of the dependencies that pyproject.toml declares, in an environment of its own.
minimum: pyproject.toml
	@$(PYTHON) -m venv $(VENV)-minimum
	@$(VENV)-minimum/bin/python -m pip --disable-pip-version-check --quiet install pytest mpmath \
		$$(sed -n '/^dependencies/,/^]/s/ *"\(.*\)>=\(.*\)",/\1==\2.*/p' pyproject.toml)
	@PYTHONPATH=. $(VENV)-minimum/bin/python -m pytest -q tests/test_seeds.py tests/autograd \
		tests/compiler/jit tests/compiler/lowering tests/compiler/kernels/test_listing.py tests/func/test_from_numba.py

# Names, optimizers, schedules, distributions and random programs beside PyTorch's own, in an environment of its own.
parity: $(VENV)-parity/.installed
	@$(VENV)-parity/bin/python -m tests.table.parity
	@$(VENV)-parity/bin/python -m tests.nn.parity
	@$(VENV)-parity/bin/python -m tests.optim.parity
	@$(VENV)-parity/bin/python -m tests.distributions.parity
	@$(VENV)-parity/bin/python -m tests.campaign.parity
	@$(VENV)-parity/bin/python -m tests.campaign.torch_programs 0 300

$(VENV)-parity/.installed: pyproject.toml
	@echo "installing lucid and PyTorch into $(VENV)-parity"
	@$(PYTHON) -m venv $(VENV)-parity
	@$(VENV)-parity/bin/python -m pip --disable-pip-version-check --quiet install torch==2.13.0
	@$(VENV)-parity/bin/python -m pip --disable-pip-version-check --quiet install --editable ".[test]"
	@touch $@

$(BIN)/python:
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	@echo "installing lucid into $(VENV)"
	@$(PIP) install --editable ".[examples]"
	@touch $@

$(VENV)/.installed-test: pyproject.toml | $(BIN)/python
	@echo "installing lucid with its test tools into $(VENV)"
	@$(PIP) install --editable ".[test,dev]"
	@$(PIP) install --only-binary :all: --editable ".[mpi,dask]" 2>/dev/null \
		|| echo "no wheel of MPI or Dask here: the tests on several ranks are skipped"
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-docs: pyproject.toml | $(BIN)/python
	@echo "installing lucid with the tools of its documentation into $(VENV)"
	@$(PIP) install --editable ".[docs]"
	@touch $@ $(VENV)/.installed

clean:
	@rm -rf $(VENV) $(VENV)-parity .pytest_cache .mypy_cache .ruff_cache build dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
