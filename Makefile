# The verbs of this repository. `make demo` and `make test` need Python 3.11 or newer and make, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
PYTEST := $(BIN)/python -m pytest -q --numprocesses=3 --dist=loadfile --no-loadscope-reorder

# Keep bytecode even where the environment says not to: the processes that tests and demo start would compile it all again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test check format proof proof-short bench servers docs docs-site pictures screenshots surface wheel sbom clean

demo: $(VENV)/.demo          ## the main job: 336,776 flights from a database to Parquet, by way of log, schema, event and Spark
	$(BIN)/tidegate demo $(ARGS)

test: $(VENV)/.dev servers   ## every test but the proofs, and those that run an original beside ours
	$(PYTEST) -m "not proof and not original" $(ARGS)

check: $(VENV)/.dev          ## format, lint, types, import contracts, fresh docs, wrapped prose
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python docs/generate.py --check
	$(BIN)/python docs/prose.py --check

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/python docs/prose.py

proof: $(VENV)/.dev servers  ## the long proofs: seeds, kills, fuzz; writes docs/proofs
	$(BIN)/python -m tests.proofs $(ARGS)

proof-short: $(VENV)/.dev servers  ## a short form of the proofs, and the tests that run an original
	$(BIN)/python -m tests.proofs --short

bench: $(VENV)/.dev servers  ## us and the originals side by side; prints ratios
	$(BIN)/python -m bench $(ARGS)

servers: $(VENV)/.dev        ## fetch the real servers that tests compare with
	$(BIN)/python -m tests.servers fetch

docs: $(VENV)/.dev           ## write the reference pages anew
	$(BIN)/python docs/generate.py

docs-site: $(VENV)/.docs      ## build the docs site into build/site; a link that leads nowhere fails
	$(BIN)/python docs/build_site.py

pictures: $(VENV)/.dev       ## draw the mermaid blocks of the pages anew, for the docs site; needs Node.js
	npm install --silent --no-save --prefix build/pictures beautiful-mermaid@1.1.3
	node docs/pictures.mjs build/pictures/node_modules docs examples

screenshots: $(VENV)/.dev    ## take the pictures of the console's pages anew
	$(BIN)/python -m tests.servers fetch chromium
	$(BIN)/python docs/screenshots.py

surface: $(VENV)/.dev        ## record the public surface anew: names and signatures of the public modules, commands and options
	$(BIN)/python docs/surface.py

wheel: $(VENV)/.dev          ## build the wheel, install it alone and try it, with the lowest allowed versions too; writes the SBOM
	$(BIN)/python -m tests.wheel

sbom: $(VENV)/.dev           ## write dist/tidegate-VERSION.cdx.json: what an install brings, as CycloneDX
	$(BIN)/python -m tests.wheel --sbom

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else f"Tidegate needs Python 3.11 or newer, {sys.executable} is {sys.version.split()[0]}: make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'

$(VENV)/.demo: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "installing Tidegate with Spark into $(VENV) (the first time takes a minute or two)"
	$(PIP) --editable '.[demo]'
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "installing Tidegate with everything the tests need into $(VENV)"
	$(PIP) --editable '.[all]' --group dev
	@touch $@ $(VENV)/.demo

$(VENV)/.docs: pyproject.toml constraints.txt | $(VENV)/.dev
	$(PIP) --group docs
	@touch $@

clean:
	rm -rf $(VENV) .servers build dist *.egg-info
