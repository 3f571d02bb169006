# Needs git, make, Python 3.11-3.13 and Java 17 or newer; every target sets up the rest by itself.
.DEFAULT_GOAL := help
.PHONY: help install install-dev format lint type-check test test-faults test-compare test-readme test-browser test-stack e2e check dev-check bench bench-stack run-etl requirements docker-up docker-full-up docker-down \
        docker-clean status logs clean

VENV := .venv/bin
PYTHON := $(VENV)/python

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: ## Set up everything: the environment in .venv, the jars, the class-data archive
	@scripts/setup-dev.sh

install-dev: install ## The same, and the git hooks
	@$(VENV)/pre-commit install

format: install ## Format the code and mend what ruff can mend
	@$(VENV)/ruff check --fix --exit-zero --quiet
	@$(VENV)/ruff format

lint: install ## Ruff (rules and format) and the layers of the imports
	$(VENV)/ruff check
	$(VENV)/ruff format --check
	$(VENV)/lint-imports

type-check: install ## Mypy, strict, on the program and its tests
	$(VENV)/mypy

test: install ## All tests that need Python and Java, no more
	$(PYTHON) -m pytest --numprocesses 2 --dist loadscope --no-loadscope-reorder

test-faults: install ## Full disks and the like; needs root, to mount small disks
	$(PYTHON) -m pytest tests/faults

test-compare: install ## Runs with one thing planted: it is what they are explained by first
	$(PYTHON) -m pytest tests/compare

test-readme: install ## The commands of the README, run
	$(PYTHON) -m pytest tests/documentation

test-browser: install ## Reports as a person sees them; needs Chromium on PATH
	$(PYTHON) -m pytest tests/browser

test-stack: install ## What Compose, the collector and promtool say of the stack's files; needs them on PATH
	$(PYTHON) -m pytest tests/stack

e2e: install ## The full stack, brought up, used and harmed; needs Docker
	docker compose -f docker-compose.full.yml build spark-master
	$(PYTHON) -m pytest tests/e2e

check: lint type-check ## The fast checks: lint, type-check and the contract tests
	$(PYTHON) -m pytest tests/contract

dev-check: format lint type-check test ## Before a commit: format, lint, type-check, test

bench: install ## Measure, and write docs/benchmarks.md (takes long)
	$(PYTHON) -m tests.bench

bench-stack: install ## The same for the compose stack; needs Docker and the images
	$(PYTHON) -m tests.bench.stack

run-etl: ## The daily run: make run-etl DATE=2024-01-01
	@test -n "$(DATE)" || { echo "run-etl needs a date: make run-etl DATE=2024-01-01" >&2; exit 2; }
	@scripts/setup-dev.sh
	@$(VENV)/spark-app etl --date "$(DATE)"

docker-up: ## Spark in containers: master, workers, history server
	docker compose build spark-master
	docker compose up --detach --wait

docker-full-up: ## The whole stack; the same as scripts/start-full-stack.sh
	scripts/start-full-stack.sh

docker-down: ## End the stack; its data stays
	docker compose -f docker-compose.full.yml down

docker-clean: ## End the stack and delete its data
	docker compose -f docker-compose.full.yml down --volumes

status: ## The containers of the stack and their health
	docker compose -f docker-compose.full.yml ps --all

logs: ## What the containers of the stack say, as they say it
	docker compose -f docker-compose.full.yml logs --follow --tail 50

requirements: install ## Write requirements.txt anew from the pins in pyproject.toml
	@$(VENV)/uv lock --quiet --upgrade
	@$(VENV)/uv export --quiet --frozen --no-emit-project --no-annotate --no-header --output-file requirements.txt
	@$(VENV)/uv export --quiet --frozen --no-emit-project --no-annotate --no-header --no-dev --group image \
		--output-file requirements-image.txt

clean: ## Remove the environment and the caches here; data, runs and ~/.cache/spark-app (Java's class data) stay
	rm -rf .venv .setup.log .mypy_cache .pytest_cache .ruff_cache .import_linter_cache build *.egg-info
	find app tests scripts -type d -name __pycache__ -prune -exec rm -rf {} +
