# Everything a newcomer needs: `make demo`, then `make test`. `make` alone lists the targets.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# The order of prerequisites is the order in which people read what happens.
.NOTPARALLEL:

PYTHON ?= >=3.11,<3.14
BIN := .venv/bin
OWN_UV := .uv/bin/uv
UV := $(or $(shell command -v uv 2>/dev/null),$(OWN_UV))

# uv does not read pip's configuration: hand it the index that pip uses, at run time and unseen.
pip_index = $(or $(PIP_INDEX_URL),$(shell python3 -m pip config get global.index-url 2>/dev/null))
uv = $(if $(or $(UV_DEFAULT_INDEX),$(UV_INDEX_URL)),,$(if $(pip_index),UV_DEFAULT_INDEX='$(pip_index)' ))$(UV)

# Interpreters that are already here, also those that pyenv has but does not show; none is downloaded.
PYENV := $(or $(PYENV_ROOT),$(HOME)/.pyenv)/versions
PYTHON39 := $(or $(shell python3.9 -c 'import sys; print(sys.executable)' 2>/dev/null),$(lastword \
	$(wildcard $(PYENV)/3.9*/bin/python3.9)))
PYTHON_NEWEST := $(lastword $(sort $(wildcard $(PYENV)/3.1[2-9]*/bin/python3.1[2-9])))

say = printf '\n\033[1m%s\033[0m\n' "$(1)"

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  \033[1m%-14s\033[0m %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

## Environments -------------------------------------------------------------------------------------------------------

.PHONY: setup
setup: .venv/.installed ## Make .venv with pinned, hashed requirements; repeats only when they change

$(OWN_UV): requirements/uv.txt
	@$(call say,Installing uv into .uv)
	@export PIP_ROOT_USER_ACTION=ignore; python3 -m pip install --quiet --require-hashes --upgrade --target .uv -r $< \
		|| { rm -rf .uv && python3 -m venv .uv && .uv/bin/python -m pip install --quiet --require-hashes -r $<; } \
		|| { echo "make setup needs uv, or a python3 with pip or venv (Debian: python3-venv)" >&2; exit 1; }
	@touch $@

# What an install generates; without it there must be another.
SCHEMAS := src/tessera/embedded/schemas/kubernetes.json
.PHONY: generate-again

.venv/.installed: requirements/dev.txt pyproject.toml sdk/kpu/pyproject.toml sdk/openshift_ai_sdk/pyproject.toml \
		$(wildcard build_*.py) $(wildcard src/tessera/node/protocols/*.proto) \
		src/tessera/embedded/schemas/marks.toml $(if $(wildcard $(SCHEMAS)),,generate-again) \
		| $(filter $(OWN_UV),$(UV))
	@$(call say,Preparing .venv)
	@$(uv) venv --quiet --allow-existing --python '$(PYTHON)' .venv
	@$(uv) pip sync --quiet --python $(BIN)/python --require-hashes requirements/dev.txt
	@$(uv) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation \
		--editable . --editable sdk/kpu --editable sdk/openshift_ai_sdk
	@touch $@

.venv39/.installed: interpreter = $(PYTHON39)
.venv-newest/.installed: interpreter = $(PYTHON_NEWEST)
.venv39/.installed .venv-newest/.installed: requirements/sdk-py39.txt sdk/openshift_ai_sdk/pyproject.toml \
		| $(filter $(OWN_UV),$(UV))
	@$(call say,Preparing $(@D))
	@$(uv) venv --quiet --allow-existing --python '$(interpreter)' $(@D)
	@$(uv) pip sync --quiet --python $(@D)/bin/python --require-hashes requirements/sdk-py39.txt
	@$(uv) pip install --quiet --python $(@D)/bin/python --no-deps --no-build-isolation --editable sdk/openshift_ai_sdk
	@touch $@

# torch from the registry brings gigabytes of CUDA with it, so it has an environment of its own, and shows how far it is.
.venv-torch/.installed: requirements/torch.txt sdk/kpu/pyproject.toml | $(filter $(OWN_UV),$(UV))
	@$(call say,Preparing .venv-torch (a few gigabytes))
	@$(uv) venv --quiet --allow-existing --python '$(PYTHON)' .venv-torch
	@$(uv) pip sync --python .venv-torch/bin/python --require-hashes requirements/torch.txt
	@$(uv) pip install --quiet --python .venv-torch/bin/python --no-deps --no-build-isolation --editable sdk/kpu
	@touch $@

COMPILE = $(uv) pip compile --quiet --universal --fork-strategy fewest \
	--generate-hashes --no-emit-index-url --no-header $(LOCK_FLAGS)

.PHONY: lock
lock: | $(filter $(OWN_UV),$(UV)) ## Pin and hash the requirement files again, after a change in pyproject.toml
	@$(COMPILE) --python-version 3.11 pyproject.toml --output-file requirements/runtime.txt
	@$(COMPILE) --python-version 3.11 pyproject.toml --group dev --output-file requirements/dev.txt
	@$(COMPILE) --python-version 3.9 requirements/sdk-py39.in --output-file requirements/sdk-py39.txt
	@$(COMPILE) --python-version 3.11 requirements/torch.in --output-file requirements/torch.txt
	@$(COMPILE) --python-version 3.9 requirements/uv.in --output-file requirements/uv.txt
	@$(COMPILE) --python-version 3.9 requirements/native.in --output-file requirements/native.txt
	@$(COMPILE) --python-version 3.11 requirements/mpi.in --output-file requirements/mpi.txt

## To see it ----------------------------------------------------------------------------------------------------------

.PHONY: demo
demo: setup native ## Start a cluster on this machine and share its cards, before your eyes
	@$(BIN)/python examples/demo/demo.py

## To prove it --------------------------------------------------------------------------------------------------------

# Most tests wait for a cluster most of the time, so two directories of them go side by side.
AT_ONCE ?= 2
SIDE_BY_SIDE := $(if $(filter-out 1,$(AT_ONCE)),--numprocesses $(AT_ONCE))
CLIENTS_ON_A_CLUSTER := tests/examples/test_client_tour.py tests/examples/test_java_client.py
.PHONY: test test-tessera test-sdk test-sdk-py39 test-sdk-newest
test: check test-tessera test-sdk ## Run the checks, the tests, and the tests of both SDKs

test-tessera: setup native programs .venv-torch/.installed ## Run the tests alone
	@$(call say,Tests)
	@$(BIN)/pytest $(SIDE_BY_SIDE)
	@$(call say,The contract and the clients on the embedded engine)
	@TESSERA_ENGINE=embedded $(BIN)/pytest $(SIDE_BY_SIDE) tests/contract tests/seeds $(CLIENTS_ON_A_CLUSTER)

# Open MPI 5 hangs by itself at one start in some fifty, so its tests are no part of `make test`.
.PHONY: test-openmpi5
test-openmpi5: setup programs ## Run the tests of MPI with Open MPI 5 too
	@$(call say,MPI)
	@TESSERA_OPENMPI5=1 $(BIN)/pytest tests/mpi

# A real Kubernetes for the tests, built from Go modules and kept outside the tree. Without Go or root the tests that
# need it are skipped, and say so; on CI that is a failure.
.PHONY: programs
programs: setup ## Build Kubernetes and its like for the tests, unless they are built already
	@$(call say,Kubernetes for the tests)
	@$(BIN)/python -m testbed build || [ "$${CI:-}" != true ]

# What lives inside other processes is C, built for C libraries as old as those of the images that people still use.
NATIVE_TARGET := $(shell uname -m)-linux-gnu.2.17
.PHONY: native
native: .zig/.installed ## Build the C libraries of native/
	@$(call say,The C libraries)
	@$(MAKE) -s --no-print-directory -C native CC='PYTHONPATH=$(CURDIR)/.zig python3 -m ziglang cc -target $(NATIVE_TARGET)'

.zig/.installed: requirements/native.txt | $(filter $(OWN_UV),$(UV))
	@$(call say,Bringing a C compiler into .zig)
	@$(uv) pip install --quiet --python "$$(command -v python3)" --target .zig --require-hashes -r $<
	@touch $@

.PHONY: cluster
cluster: setup programs ## Run a real Kubernetes for hands-on use, until Ctrl-C
	@$(BIN)/python -m testbed up

# Tensors are torch's where it is installed: what makes, carries and keeps them is run again.
WHERE_TORCH_COUNTS := torch tensors sharing server/test_transfers.py server/test_stock_peers.py client/test_calls.py

test-sdk: setup .venv-torch/.installed test-sdk-py39 test-sdk-newest ## Run the tests of both SDKs: kpu with and without torch, openshift_ai_sdk on the oldest Python and on the newest
	@$(call say,SDK tests: kpu without torch)
	@$(BIN)/pytest -p no:asyncio -c sdk/kpu/pyproject.toml sdk/kpu/tests --ignore sdk/kpu/tests/torch
	@$(call say,SDK tests: kpu with torch)
	@.venv-torch/bin/python -m pytest -c sdk/kpu/pyproject.toml $(addprefix sdk/kpu/tests/,$(WHERE_TORCH_COUNTS))
	@$(call say,SDK tests: openshift_ai_sdk)
	@$(BIN)/pytest -p no:asyncio -c sdk/openshift_ai_sdk/pyproject.toml sdk/openshift_ai_sdk/tests

ifneq ($(PYTHON39),)
test-sdk-py39: .venv39/.installed
	@$(call say,SDK tests: openshift_ai_sdk on Python 3.9)
	@.venv39/bin/python -m pytest -c sdk/openshift_ai_sdk/pyproject.toml sdk/openshift_ai_sdk/tests
else
test-sdk-py39:
	@$(call say,SDK tests: openshift_ai_sdk on Python 3.9)
	@echo "No Python 3.9 was found: openshift_ai_sdk is tested on the Python of .venv only."
	@[ "$${CI:-}" != true ] || { echo "CI must test it on Python 3.9 too: install one." >&2; exit 1; }
endif

# Where no newer Python than that of .venv is known, that one is the newest.
ifneq ($(PYTHON_NEWEST),)
test-sdk-newest: .venv-newest/.installed
	@$(call say,SDK tests: openshift_ai_sdk on $(notdir $(PYTHON_NEWEST)))
	@.venv-newest/bin/python -m pytest -c sdk/openshift_ai_sdk/pyproject.toml sdk/openshift_ai_sdk/tests
else
test-sdk-newest:
endif

.PHONY: check check-format check-lint check-types check-imports check-docs
check: check-format check-lint check-types check-imports check-docs ## Run every static check
check-format: setup ## Is the code formatted?
	@$(call say,Formatting)
	@$(BIN)/ruff format --check
check-lint: setup ## Does the code follow the rules?
	@$(call say,Rules)
	@$(BIN)/ruff check
check-types: setup ## Do the types hold?
	@$(call say,Types)
	@$(BIN)/pyright
check-imports: setup ## Do imports point one way?
	@$(call say,Imports)
	@$(BIN)/lint-imports
check-docs: setup ## Do links resolve, are requirements pinned, are files free of home paths?
	@$(call say,Documents and repository)
	@$(BIN)/pytest -q tests/repository

.PHONY: engines-table
engines-table: setup programs ## Write the table of docs/engines.md from a run of the contract on both engines
	@$(BIN)/pytest tests/contract --write-engines-table
	@$(BIN)/pytest tests/contract --engine embedded --write-engines-table

.PHONY: chart
chart: setup ## Write what the Helm chart takes from the vendor catalogue
	@$(BIN)/tessera manifests --chart charts/gpu-scheduler/files

.PHONY: format
format: setup ## Format the code and mend what can be mended
	@$(BIN)/ruff check --fix-only --quiet
	@$(BIN)/ruff format

.PHONY: bench
bench: setup ## Measure what docs/benchmarks.md reports
	@$(BIN)/python -m benchmarks

.PHONY: bench-cluster
bench-cluster: setup programs ## Measure what needs a real cluster
	@$(BIN)/python -m benchmarks cluster

.PHONY: soak
soak: setup ## Run the property tests with thousands of examples
	@HYPOTHESIS_PROFILE=soak $(BIN)/pytest --timeout=0 tests/property

.PHONY: clean
clean: ## Remove environments and caches
	@rm -rf .uv .venv .venv39 .venv-newest .venv-torch .zig build .hypothesis .pytest_cache .ruff_cache .import_linter_cache
