# Gridline's commands. `make help` lists them. Needs Python 3.11 and make, nothing else.
.DEFAULT_GOAL := help
SHELL := /bin/bash
MAKEFLAGS += --no-print-directory

# For make only, never for the programs it starts (they refuse GRIDLINE_ names that are no settings).
PYTHON ?= python3.11
GRIDLINE_TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
ENGINE ?= $(if $(shell command -v nvidia-smi 2>/dev/null),engine-gpu,engine)
T ?= tests
FAST = $(if $(filter tests,$(T)),tests/gridline tests/house,$(T))
unexport GRIDLINE_TORCH_INDEX ENGINE T PYTHON DEMO_ONCE
# Without bytecode every program starts in twice the time.
unexport PYTHONDONTWRITEBYTECODE

RUN := .venv/bin/python -m
# The platform's settings may stand in .env; tests and checks do not read it.
GRIDLINE = set -a; [ ! -f .env ] || . ./.env; set +a; exec $(RUN)
INSTALL = $(PYTHON) requirements/install.py --torch-index "$(GRIDLINE_TORCH_INDEX)"

.PHONY: help
help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

.PHONY: python
python:
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.11 is needed and '$(PYTHON)' is not on the PATH. \
	Install it, or say where it is: make PYTHON=/path/to/python3.11" >&2; exit 1; }

.PHONY: environments
environments: python
	@$(INSTALL) platform $(ENGINE)

.PHONY: environments-dev
environments-dev: python
	@$(INSTALL) platform dev $(ENGINE)

.PHONY: checks-dev
checks-dev: python
	@$(INSTALL) platform dev

.PHONY: demo
demo: export GRIDLINE_PROFILE := $(or $(PROFILE),$(GRIDLINE_PROFILE))
demo: environments ## Install, start everything, run sample batches, stay up until Ctrl-C (DEMO_ONCE=1: end after them; PROFILE=gridport: another dialect)
	@$(GRIDLINE) gridline.operate.demo $(if $(DEMO_ONCE),--once)

.PHONY: up
up: environments ## Start the stack in the background
	@$(GRIDLINE) gridline.cli.main up

.PHONY: down
down: ## Stop the stack
	@if [ -x .venv/bin/python ]; then $(GRIDLINE) gridline.cli.main down; fi

.PHONY: status
status: ## What runs, and where
	@$(GRIDLINE) gridline.cli.main status

.PHONY: lint
lint: checks-dev ## Style, imports between rooms
	@$(RUN) ruff check .
	@$(RUN) ruff format --check .
	@.venv/bin/lint-imports --no-cache

.PHONY: types
types: checks-dev ## mypy, strict
	@$(RUN) mypy

.PHONY: test-fast
test-fast: checks-dev ## The domain's and the house's tests, under 30 s: no server, Airflow, engine or browser
	@$(RUN) pytest -q -n 2 -m "not thorough and not programs and not stack and not engine and not airflow and not browser and not deep and not trial" $(FAST)

.PHONY: test
test: environments-dev browser lint types ## All tests that show the product works, at most 20 minutes
	@$(RUN) pytest -q -n 2 -m "not programs and not stack and not engine and not airflow and not browser and not deep and not trial" $(T)
	@$(RUN) pytest -q -n 2 -m "programs and not stack and not engine and not airflow and not browser and not deep and not trial" $(T)
	@$(RUN) pytest -q -m "(stack or engine or airflow or browser) and not deep and not trial" $(T)

.PHONY: test-deep
test-deep: environments-dev browser conformance-clients accessibility-rules ## The long tests, at most 40 minutes more
	@$(RUN) pytest -q -n 2 -m "deep and not stack and not conformance and not trial" $(T)
	@$(RUN) pytest -q -m "deep and conformance and not stack" $(T)
	@$(RUN) pytest -q -m "deep and stack" $(T)

FROM ?= 100000
SEEDS ?= 1000
.PHONY: simulate
simulate: checks-dev ## Whole platforms from seeds, with faults: SEED=7 for one, SEEDS=20000 for many (FROM=… on)
	@$(RUN) pytest -q $(if $(SEED),,-n 2) tests/simulation/test_simulation.py -k every_promise \
	  --seeds $(if $(SEED),$(SEED),$(FROM):$$(($(FROM) + $(SEEDS))))

.PHONY: trials
trials: environments-dev ## Kills of every process, the runbooks, Celery workers, a thousand waiting batches, 50,000 lines, planted bugs: alone on the machine
	@$(RUN) pytest -q -m trial $(T)

# The tokens go from make to the suite through the environment: a command line shows in process lists.
.PHONY: conformance
conformance: export CONFORMANCE_BASE_URL := $(or $(BASE_URL),$(CONFORMANCE_BASE_URL))
conformance: export CONFORMANCE_TOKEN := $(or $(TOKEN),$(CONFORMANCE_TOKEN))
conformance: export CONFORMANCE_PROFILE := $(or $(PROFILE),$(CONFORMANCE_PROFILE))
conformance: export CONFORMANCE_OTHER_TOKEN := $(or $(OTHER_TOKEN),$(CONFORMANCE_OTHER_TOKEN))
conformance: $(if $(BASE_URL)$(CONFORMANCE_BASE_URL),,environments-dev) conformance-clients ## Both official SDKs and every reported fault, on a stack of its own (PROFILE=gridport: in that dialect) or at BASE_URL=… (TOKEN=…)
	@$(RUN) pytest -q -m conformance $(if $(BASE_URL)$(CONFORMANCE_BASE_URL),tests/conformance,--write-conformance $(if $(CONFORMANCE_PROFILE),tests/conformance,$(T)))

# The old openai-python, and openai-node.
.PHONY: conformance-clients
conformance-clients: checks-dev tests/conformance/node/node_modules/.package-lock.json
	@$(INSTALL) openai-oldest

# The rules of axe-core, which the dashboard's pages are held to.
.PHONY: accessibility-rules
accessibility-rules: tests/dashboard/node/node_modules/.package-lock.json

%/node_modules/.package-lock.json: %/package-lock.json | checks-dev
	@cd $* && PATH="$(CURDIR)/.venv/bin:$$PATH" npm ci --silent && touch node_modules/.package-lock.json

# The browser tests need a real Chromium; as root it is installed here, else they say how.
.PHONY: browser
browser:
	@if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "Installing chromium and chromium-driver for the browser tests"; \
	  export DEBIAN_FRONTEND=noninteractive; \
	  apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium chromium-driver >/dev/null; \
	else echo "No Chromium: the browser tests will fail. Install the packages chromium and chromium-driver."; fi

.PHONY: bench
bench: bench-overhead bench-engine bench-api bench-ledger bench-requests ## Every benchmark

.PHONY: bench-overhead
bench-overhead: environments ## Seconds from create to completed beside an empty DAG of the same tasks
	@$(GRIDLINE) bench.overhead

QUESTIONS ?= $(wildcard ../shared/data/gsm8k-test.jsonl)
.PHONY: bench-engine
bench-engine: environments ## Batches beside vLLM's run_batch (QUESTIONS=file.jsonl; ENGINE_BENCH="--lines 200 …")
	@$(GRIDLINE) bench.engine $(if $(QUESTIONS),--questions "$(QUESTIONS)") $(ENGINE_BENCH)

.PHONY: bench-plots
bench-plots: checks-dev ## Draw docs/images/engine.svg from docs/measured/engine.jsonl (ENGINE_BENCH="--keep docs/measured/engine.jsonl")
	@$(RUN) bench.plots

.PHONY: openapi
openapi: checks-dev ## Write docs/openapi.json anew from the code
	@$(RUN) api.reference docs/openapi.json

.PHONY: bench-api
bench-api: environments ## Uploads beside nginx, polls beside hello world, checking a file beside a bare parser
	@$(GRIDLINE) bench.api
	@$(GRIDLINE) bench.checking

.PHONY: bench-requests
bench-requests: environments ## What the request log costs a batch of 50,000 lines, and how fast it answers
	@$(GRIDLINE) bench.request_log

.PHONY: bench-ledger
bench-ledger: environments ## Holds and settlements beside the database's own benchmark
	@$(GRIDLINE) bench.ledger

.PHONY: migrate
migrate: environments ## Bring the domain database to the newest schema
	@$(GRIDLINE) gridline.cli.main migrate

.PHONY: books
books: environments ## Prove that the books hold
	@$(GRIDLINE) gridline.cli.main books

# Compiles requirements/*.txt anew; no address of an index ends up in the files.
COMPILE = ../.venv/bin/uv pip compile -q --generate-hashes -p 3.11 --custom-compile-command 'make requirements'
.PHONY: requirements
requirements: checks-dev ## Compile requirements/*.txt anew from requirements/*.in
	cd requirements && $(COMPILE) uv.in -o uv.txt
	cd requirements && $(COMPILE) platform.in -o platform.txt
	cd requirements && $(COMPILE) dev.in -o dev.txt
	cd requirements && $(COMPILE) openai-oldest.in -o openai-oldest.txt
	cd requirements && $(COMPILE) --no-deps models.in -o models.txt
	cd requirements && $(COMPILE) --excludes engine.excludes engine-gpu.in -o engine-gpu.txt
	cd requirements && UV_FIND_LINKS="$$(../.venv/bin/python -m pip config get :env:.find-links 2>/dev/null \
	  || ../.venv/bin/python -m pip config get global.find-links 2>/dev/null)" \
	  $(COMPILE) --excludes engine.excludes engine-cpu.in -o engine-cpu.txt
