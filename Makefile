# Two commands do everything: `make run` and `make test`. The rest are their parts.
# What is missing is installed: a virtual environment here, Debian packages where root and apt are at hand.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYENV_ROOT ?= $(HOME)/.pyenv
PYENV_PYTHONS := $(wildcard $(PYENV_ROOT)/versions/3.1[1234].*/bin)
export PATH := $(subst $() ,:,$(strip $(PYENV_PYTHONS) $(PATH)))
# Compiled tests are kept for the next worker.
unexport PYTHONDONTWRITEBYTECODE
export UV_SYSTEM_CERTS := true
export UV_PYTHON_DOWNLOADS := never
PYTHON ?= $(firstword $(wildcard $(addsuffix /python3.11,$(PYENV_PYTHONS))) $(foreach name,python3.11 python3.12 python3.13 python3.14 python3,$(shell command -v $(name) 2>/dev/null)))
PYTHON_3_14 := $(wildcard $(addsuffix /python3.14,$(PYENV_PYTHONS)))$(shell command -v python3.14)
# In a terminal, uv shows its progress: without packages in its cache it takes a minute.
PIP := .venv/bin/uv pip install $(shell test -t 2 || echo --quiet) --python .venv/bin/python --constraint constraints.txt \
  --config-settings editable_mode=strict
# Longest first: two environments run at a time.
ENVIRONMENTS ?= tests,checks,speed,dist
SOAK_ENVIRONMENTS = tests,speed,dist,py312,py313,$(if $(PYTHON_3_14),py314$(comma))spark40,spark41,spark42,spark43
ARGS ?=

# Tests that read the sources and run nothing else.
TIDY := tests/test_tidy.py tests/test_wording.py tests/test_import_circles.py

# Debian packages that an environment's tests need, as [COMMAND:]PACKAGE.
PACKAGES_java := java:openjdk-17-jdk-headless mvn:maven
PACKAGES_tests := $(PACKAGES_java) cc:gcc curl jq openssl tshark chromium go:golang-go node:nodejs npm dockerd:docker.io docker-compose debootstrap
PACKAGES_speed := cc:gcc
PACKAGES_dist := cc:gcc $(PACKAGES_java)
PACKAGES_spark40 := $(PACKAGES_java)
PACKAGES_spark41 := $(PACKAGES_java)
PACKAGES_spark42 := $(PACKAGES_java)
PACKAGES_spark43 := $(PACKAGES_java)
comma := ,
PACKAGES = $(sort $(foreach environment,$(subst $(comma), ,$(ENVIRONMENTS)),$(PACKAGES_$(environment))))
# The editable install links files one by one: it is made anew when a file comes or goes, and so is mypy's cache, which
# would miss names of new modules.
INSTALLED_FOLDERS := $(shell sed -nE 's/^"mockraft[a-z_.]*" = "(.*)"$$/\1/p' pyproject.toml)

.PHONY: help run run-kafka test soak check speed docs dist version test-one mutants fuzz release-check pages matrix benchmarks sync generate clients clean java FORCE

help:  ## what can be made
	@grep -hE '^[a-z-]+:.*##' Makefile | sed 's/:.*##/\t/' | expand -t 14

.venv/python: pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "mockraft needs Python 3.11 or later (none found on the PATH)" >&2; exit 1; }
	@echo "installing mockraft into .venv (once)"
	@$(PYTHON) -m venv .venv || { .ci/packages python3-venv && $(PYTHON) -m venv .venv; }
	@.venv/bin/python -m pip install --disable-pip-version-check --quiet --constraint constraints.txt uv
	@rm -f .venv/ready
	@touch $@

.venv/files: .venv/python FORCE
	@find $(INSTALLED_FOLDERS) -type f ! -name '*.pyc' | sort >$@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; rm -rf .mypy_cache; fi

.venv/ready: .venv/python .venv/files
	@$(PIP) --reinstall-package mockraft \
	  --editable '.[admin,captures,conformance,containers,keystores,kio,mcp,oauth]' --group test --group lint
	@touch $@

run: .venv/ready  ## the controller with three simulated brokers, live in the terminal (ARGS='--for 10')
	@.venv/bin/mockraft run $(ARGS)

run-kafka: .venv/ready java  ## the controller with a real Kafka broker; the cluster is yours to use
	@.venv/bin/mockraft run-kafka $(ARGS)

test: .venv/ready  ## tests of every kind, and the checks, in ten minutes (two environments at a time)
	@.ci/packages $(PACKAGES) || test -z "$(CI)"
	@.venv/bin/tox run-parallel --parallel 2 --parallel-no-spinner --skip-missing-interpreters $(if $(CI),false,true) -e $(ENVIRONMENTS)

soak:  ## the full budgets of fuzz steps, seeds, mutants and levels, each PySpark, artefacts built twice (three hours)
	@MOCKRAFT_BUDGET=soak PYTEST_TIMEOUT=1800 $(MAKE) --no-print-directory test ENVIRONMENTS=$(SOAK_ENVIRONMENTS)

check: .venv/ready  ## lint, format, types, import directions, generated code, rules of the project: before each commit
	@$(MAKE) --no-print-directory checks TOOLS=.venv/bin

# All of them run, whichever fail.
CHECKS := check-types check-tidy check-lint check-format check-imports check-generated
TOOLS ?= .venv/bin
.PHONY: $(CHECKS) checks format

checks:
	@$(MAKE) --no-print-directory --keep-going --jobs 2 --output-sync=target $(CHECKS) TOOLS=$(TOOLS)

check-types:
	@$(TOOLS)/python tests/documentation/blocks.py
	@$(TOOLS)/mypy

check-tidy:
	@$(TOOLS)/python -m pytest -q $(TIDY)

check-lint:
	@$(TOOLS)/ruff check .

check-format:
	@$(TOOLS)/ruff format --check .

check-imports:
	@$(TOOLS)/lint-imports

check-generated:
	@$(TOOLS)/python -m mockraft.codegen --check
	@$(TOOLS)/python -m tools.sync_types --check
	@$(TOOLS)/python -m tools.client_faults --check

format: .venv/ready  ## format the code and sort its imports
	@.venv/bin/ruff check --quiet --select I --fix . && .venv/bin/ruff format .

test-one: .venv/ready  ## some tests in .venv, without those that need more than Python (ARGS='tests/wire -k uuid')
	@.venv/bin/python -m pytest $(ARGS)

speed: .venv/ready  ## mockraft-speed, the codec in C, built into .venv (a C compiler is needed)
	@.ci/packages cc:gcc
	@$(PIP) --reinstall-package mockraft-speed ./speed

docs: .venv/ready  ## the documentation as a site, in build/site (make docs ARGS=serve shows it while you write)
	@.venv/bin/python -c 'import mkdocs, mkdocstrings' 2>/dev/null || $(PIP) --group docs
	@NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs $(or $(ARGS),build) --strict

dist: .venv/ready  ## a release in build/dist, the same bytes each time: packages, site, SBOM, image (BASE=python:3.13-slim)
	@.venv/bin/python -c 'import auditwheel, cyclonedx_py, mkdocs, mkdocstrings, twine' 2>/dev/null || $(PIP) --group dist --group docs
	@.venv/bin/python -m tools.artefacts $(if $(BASE),--base $(BASE)) $(ARGS)

version:  ## writes the version of pyproject.toml into the other files that have it
	@$(PYTHON) -m tools.artefacts.version

mutants: .venv/ready  ## changes the code of a package and shows changes that its tests miss (ARGS='server/raft --sample 100')
	@.venv/bin/python -c 'import mutmut' 2>/dev/null || $(PIP) --group mutation
	@.venv/bin/python -m tools.mutation $(ARGS)

fuzz: .venv/ready  ## coverage-guided fuzzing of a reader with Atheris (ARGS='codec --seconds 60')
	@.venv/bin/python -c 'import atheris' 2>/dev/null || $(PIP) --group fuzzing
	@.venv/bin/python -m tools.fuzzing $(ARGS)

release-check: .venv/ready java  ## what a Kafka release changes, and what of mockraft fails with it (X=4.5.0 or JARS=DIR)
	-@.venv/bin/mockraft release-check $(if $(JARS),--jars "$(JARS)",--kafka-version "$(X)")
	@.venv/bin/python -m tools.release_check $(X) $(if $(JARS),--jars "$(JARS)") $(ARGS)

pages: .venv/ready  ## the generated parts of docs/ (ARGS=conformance: the table of passed cases, with Java)
	@.venv/bin/python -m tools.pages $(ARGS)

matrix: .venv/ready  ## the tables of docs/evidence/matrix.md (ARGS='controllers captures' measures those anew, with Java)
	@.venv/bin/python -m tools.matrix $(ARGS)

benchmarks: speed java  ## every benchmark with its peers in one run, at most 20 minutes; writes docs/evidence/benchmarks.md
	@.venv/bin/python -c 'import matplotlib, pyspark' 2>/dev/null || $(PIP) --group bench --editable '.[spark]'
	@.venv/bin/python benchmarks/run.py $(ARGS)

sync: .venv/ready java  ## schemas_json out of the jars of a Kafka release (X=4.5.0)
	@.venv/bin/python -m tools.sync $(X) $(ARGS)

generate: .venv/ready  ## wire/messages and wire/records out of schemas_json, types of the blocking classes, the page of serve's options
	@.venv/bin/python -m mockraft.codegen --target .
	@.venv/bin/python -m tools.sync_types
	@.venv/bin/python -m tools.pages serve-options

clients: .venv/ready  ## clients/openapi.json, the Go client generated from it, methods for faults, of Python too
	@.venv/bin/python -m mockraft.server.admin >clients/openapi.json
	@.venv/bin/python -m tools.client_faults
	@cd clients/go && go generate ./...

java:
	@.ci/packages java:openjdk-17-jdk-headless mvn:maven

clean:  ## remove what was made here
	rm -rf .venv .tox build dist *.egg-info .mypy_cache .ruff_cache .hypothesis
