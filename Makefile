# Needs git, make, Python 3.11-3.13 and Java 17 or newer; every target sets up the rest by itself.
.DEFAULT_GOAL := help
.PHONY: help install install-dev archive format lint type-check test test-integration test-faults test-streams test-compare test-readme test-recipes test-browser \
        test-stack test-wheel wheel release e2e e2e-long e2e-ha e2e-s3 e2e-tls e2e-kubernetes check dev-check ci chaos record pictures bench bench-stack run-etl run-streaming run-ml requirements docker-up docker-full-up \
        docker-down docker-clean status logs clean

VENV := .venv/bin
PYTHON := $(VENV)/python
DASHBOARDS ?= ../shared/tools/dashboards

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: ## Set up the environment in .venv and the jars
	@scripts/setup-dev.sh

install-dev: install ## The same, and the git hooks
	@$(VENV)/pre-commit install

archive: install ## Build the class-data archive, which shortens each start of Spark
	@$(PYTHON) -m spark_app.spark.class_data_archive

format: install ## Format the code and fix what ruff can fix
	@$(VENV)/ruff check --fix --exit-zero --quiet
	@$(VENV)/ruff format

lint: install ## Check the rules and format of ruff, and the layers of the imports
	$(VENV)/ruff check
	$(VENV)/ruff format --check
	$(VENV)/lint-imports

type-check: install ## Check the types of the program and its tests with mypy, strict
	$(VENV)/mypy

test: archive ## Run the unit and contract tests, or those of TESTS, two at a time
	$(PYTHON) -m pytest --numprocesses 2 --dist loadscope --no-loadscope-reorder $(TESTS)

test-integration: archive ## Run pipelines, queries, trainings and observed programs on a real Spark, with Delta and Kafka
	$(PYTHON) -m pytest --numprocesses 2 --dist loadscope --no-loadscope-reorder tests/integration

test-faults: archive ## Run the tests with full disks and similar faults; needs root, to mount small disks
	$(PYTHON) -m pytest tests/faults

test-streams: archive ## Kill streaming queries and Kafka, and compare each table with the truth
	$(PYTHON) -m pytest tests/streaming

test-compare: archive ## Run jobs with one planted cause each; the comparison must rank it first
	$(PYTHON) -m pytest tests/compare

test-readme: archive ## Run the commands of the README
	$(PYTHON) -m pytest tests/documentation

test-recipes: archive ## Follow the recipes of docs/recipes.md in a copy of the tree
	$(PYTHON) -m pytest tests/recipes

test-browser: archive ## Open reports in a browser; needs Chromium on PATH
	$(PYTHON) -m pytest tests/browser

test-stack: install ## Check the stack's files and its start with Docker, the collector, Prometheus, promtool and versitygw (S3); needs them on PATH
	$(PYTHON) -m pytest --numprocesses 2 --dist loadscope tests/stack

wheel: install ## Build the sdist in dist/, and from it the wheel, which people install who have no clone
	@rm -rf build dist
	@$(VENV)/uv build --quiet --no-build-isolation --python $(PYTHON) --out-dir dist
	@rm -rf build

test-wheel: wheel ## Install the wheel, observe jobs of Spark 3.5 and of this Spark with it, and run the README's DAG in Airflow
	$(PYTHON) -m pytest tests/wheel

release: install ## Build and check sdist, wheel and image of the version in the CHANGELOG; without the image: ARGS=--no-image
	@scripts/release.sh $(ARGS)

e2e: install ## Start the full stack, which builds its image, and see a day and programs in it; needs Docker
	$(PYTHON) -m pytest tests/e2e

e2e-long: install ## The same, and plant each incident in it, train and stream, and look at every panel; needs Docker
	$(PYTHON) -m pytest -m "" tests/e2e

e2e-ha: install ## Start the stack with two masters, and kill the one that leads; needs Docker
	$(PYTHON) -m pytest tests/ha

e2e-s3: install ## Start the stack with an S3 server, run a day, a query and a training on it; needs Docker
	$(PYTHON) -m pytest tests/object_store

e2e-tls: install ## Start the stack with TLS, run a day and a query, and listen to its network; needs Docker and root
	$(PYTHON) -m pytest tests/tls

e2e-kubernetes: install ## Install the chart, run Spark on Kubernetes and see it; needs KUBECONFIG, kubectl, helm, promtool and the images
	$(PYTHON) -m pytest tests/kubernetes

check: lint type-check ## Run the fast checks: lint, type-check and the contract tests
	$(PYTHON) -m pytest tests/contract

ci: ## Run one part of .ci/run as CI does, with an empty home folder: make ci PART=unit; all of them without PART
	.ci/run $(PART)

dev-check: format lint type-check test ## Format, lint, type-check and test: before a commit

chaos: archive wheel ## Kill runs, streams and Kafka at many points and damage event logs, for a long time: before a release
	$(PYTHON) -m pytest tests/chaos
	$(PYTHON) -m pytest -m "" tests/documentation
	$(PYTHON) -m pytest -m before_release tests/integration tests/stack tests/wheel

pictures: install ## Draw the dashboards of the running stack into build/pictures, and check what each panel shows; needs npm, Chromium and the tool of DASHBOARDS
	@test -f $(DASHBOARDS)/look.mjs || { echo "$(DASHBOARDS) has no look.mjs: set DASHBOARDS to the tool that draws Grafana's panels" >&2; exit 2; }
	@mkdir -p build/dashboards build/pictures
	@cp -r $(DASHBOARDS)/. build/dashboards
	@cd build/dashboards && npm ci --ignore-scripts --legacy-peer-deps --no-audit --no-fund && node build.mjs
	@for width in 1600 400; do (cd build/dashboards && node look.mjs --clone ../.. --out ../pictures --hours 1 --width $$width) || exit 1; done
	@$(PYTHON) -m grafana.drawn build/pictures

record: archive ## Record the event logs and the compared runs that tests replay
	$(PYTHON) -m tests.eventlogs.record
	$(PYTHON) -m tests.eventlogs.record_diagnoses
	$(PYTHON) -m tests.eventlogs.record_streams
	$(PYTHON) -m tests.eventlogs.record_connect
	$(PYTHON) -m tests.eventlogs.record_sources
	$(PYTHON) -m tests.eventlogs.record_clusters
	$(PYTHON) -m tests.compare.record

bench: archive ## Measure, and write docs/benchmarks.md (takes hours)
	$(PYTHON) -m tests.bench

bench-stack: install ## Measure the compose stack; needs Docker and the images
	$(PYTHON) -m tests.bench.stack

run-etl: ## Run the daily job: make run-etl DATE=2024-01-01
	@test -n "$(DATE)" || { echo "run-etl needs a date: make run-etl DATE=2024-01-01" >&2; exit 2; }
	@scripts/setup-dev.sh
	@$(VENV)/spark-app etl --date "$(DATE)"
	@$(PYTHON) -m spark_app.spark.class_data_archive --background

docker-up: ## Start Spark in containers: master, workers, history server
	docker compose build spark-master
	docker compose up --detach --wait

docker-full-up: ## Start the whole stack, as scripts/start-full-stack.sh does
	scripts/start-full-stack.sh

docker-down: ## Stop the stack and keep its data
	docker compose -f docker-compose.full.yml down

docker-clean: ## Stop the stack and delete its data
	docker compose -f docker-compose.full.yml down --volumes

status: ## List the containers of the stack and their health
	docker compose -f docker-compose.full.yml ps --all

logs: ## Follow the logs of the stack's containers
	docker compose -f docker-compose.full.yml logs --follow --tail 50

run-streaming: ## Run the streaming queries until Ctrl-C, or make run-streaming ARGS="--for 5m"
	@scripts/setup-dev.sh
	@$(VENV)/spark-app streaming $(ARGS)

run-ml: ## Train, judge and promote the model of refunds; makes a history of days first if there is none
	@scripts/setup-dev.sh
	@$(VENV)/spark-app ml $(ARGS)

requirements: install ## Write requirements.txt from the pins in pyproject.toml
	@$(VENV)/uv lock --quiet --upgrade
	@$(VENV)/uv export --quiet --frozen --no-emit-project --no-annotate --no-header --output-file requirements.txt
	@$(VENV)/uv export --quiet --frozen --no-emit-project --no-annotate --no-header --no-dev --group image \
		--output-file requirements-image.txt

clean: ## Delete the environment and caches of this folder; data, runs and ~/.cache/spark-app stay
	rm -rf .venv .setup.log .mypy_cache .pytest_cache .ruff_cache .import_linter_cache build dist *.egg-info src/*.egg-info
	find app tests scripts -type d -name __pycache__ -prune -exec rm -rf {} +
