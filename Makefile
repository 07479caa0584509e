# The commands of this project. `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV ?= .venv
BENCH_VENV ?= .venv-bench
BIN := $(VENV)/bin
PIP := python -m pip install --quiet --disable-pip-version-check --require-hashes
JOBS ?= 2
SEEDS ?= 1000
PACKAGES ?= workqueue cache client runtime kube operators
SAMPLE ?= 200
SEED ?= 1
CHANGED ?=
DIST ?= dist
# The suites start many small processes: those must not compile everything each time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help venv up test seeds check-operators real suites mutants mutants-changed lint console console-test bench bench-venv bench-peers docs lock dist sbom audit clean

help: ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

venv: $(VENV)/.ready ## install the project and its development tools into .venv

$(VENV)/.ready: $(VENV)/.installed constraints.txt
	@echo "installing the development tools into $(VENV) (half a minute)"
	$(BIN)/$(PIP) -r constraints.txt
	@touch $@

$(VENV)/.installed: pyproject.toml deploy/constraints.txt deploy/build.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed: make PYTHON=python3.12"; exit 1; }
	@echo "installing konverge into $(VENV) (half a minute)"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/$(PIP) -r deploy/build.txt -r deploy/constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@$(BIN)/python -m compileall -q src  # else the first start would do it, and with PYTHONDONTWRITEBYTECODE every one
	@touch $@

up: $(VENV)/.installed ## start a whole simulated Kubernetes and print how to reach it (Ctrl-C ends it)
	$(BIN)/konverge up --kubeconfig konverge.kubeconfig

test: venv ## the fast suite: in process, deterministic
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "not real and not long"

seeds: venv ## the long suite: a thousand fault seeds of the simulated cluster and of the server's disk (SEEDS=N for others), the operators' long stories, property tests with many examples
	KONVERGE_SEEDS=$(SEEDS) $(BIN)/python -m pytest -n $(JOBS) --dist worksteal tests/sim/test_seeds.py tests/apiserver/robustness/test_stories.py
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "long and not real" --ignore=tests/check/operators/test_lane.py
	HYPOTHESIS_PROFILE=many $(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "hypothesis and not real"

check-operators: venv ## konverge check on Nacos and Wukong: three kinds of faults at every write, and 1,000 generated operations each (SLICE=N for one part of each)
	KONVERGE_SLICE=$(SLICE) $(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m long tests/check/operators/test_lane.py

real: venv ## the suite against real parts (kube-apiserver, kubectl, helm …); says what it skips and why
	@$(BIN)/python -m tools.real_packages
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m real

suites: venv ## kubectl's test/cmd, the suites of controller-runtime and four operators, and Kubernetes' conformance specs on our server, and the table of docs/conformance.md (needs Go and busybox; two hours)
	$(BIN)/python -m tools.suites --jobs $(JOBS)

mutants: venv ## break the code in small ways and look whether a test notices (PACKAGES="cache client" SAMPLE=200 SEED=1 CHANGED=origin/main..)
	$(BIN)/python -m tools.mutants $(PACKAGES) --jobs $(JOBS) --sample $(SAMPLE) --seed $(SEED) $(if $(CHANGED),--changed $(CHANGED))

mutants-changed: venv ## a few mutants of what the last commits changed, with the tests beside it; fails only far below the bar
	$(BIN)/python -m tools.mutants --changed $(or $(CHANGED),HEAD~10..HEAD) --total 30 --seed $(SEED) --near --seconds 5 --least 20 --bar 60 --jobs $(JOBS)

lint: venv ## format, lint, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy bench/*.py tools/*.py tools/mutants/*.py tools/site/*.py tools/suites/*.py deploy/*.py examples/*.py
	$(BIN)/lint-imports --no-cache

console: console/node_modules/.ready ## build the console's front end into src/konverge/console/static (needs node 20 or newer)
	cd console && npm run --silent build

console/node_modules/.ready: console/package.json console/package-lock.json
	@command -v npm >/dev/null || { echo "node 20 or newer is needed to build the console: https://nodejs.org"; exit 1; }
	cd console && npm install --no-save --no-audit --no-fund
	@touch $@

console-test: ## the tests of the console's front end that need no browser; says so where they cannot run
	@command -v npm >/dev/null || { echo "no node here: the tests of the console's front end are skipped"; exit 0; }; \
	$(MAKE) --no-print-directory console/node_modules/.ready || { echo "its packages cannot be installed here: the tests of the console's front end are skipped"; exit 0; }; \
	cd console && npm run --silent test

bench-venv: $(BENCH_VENV)/.ready ## install the peers that the benchmarks compare with

$(BENCH_VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/$(PIP) -r constraints.txt
	$(BENCH_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-build-isolation -e '.[bench]'
	@touch $@

bench-peers: bench-venv ## build the other frameworks' operators for the runtime benchmark (Go, Rust; takes a while)
	@command -v go >/dev/null && (cd bench/peers/go-controller-runtime && go build -o bin/ ./typed ./memory ./webhook) || echo "no Go: controller-runtime is left out"
	@command -v cargo >/dev/null && (cd bench/peers/kube-rs && cargo build --release) || echo "no Rust: kube-rs is left out"
	$(PYTHON) -m venv bench/peers/kopf/v
	bench/peers/kopf/v/bin/python -m pip install --quiet --disable-pip-version-check kopf kubernetes_asyncio

bench: bench-venv ## run every benchmark, side by side with the peers
	$(BENCH_VENV)/bin/python -m bench all

docs: venv ## build the site of the documents, with a reference of all public names and commands, into build/site
	@test -f build/docs/.ready || { $(PYTHON) -m venv build/docs && build/docs/bin/$(PIP) -r deploy/docs.txt && touch build/docs/.ready; }
	$(BIN)/python -m tools.site build/site build/docs/bin/python

lock: ## pin what is installed, with hashes, from pyproject.toml (UPGRADE=1: take newer versions)
	$(PYTHON) -m venv build/lock
	build/lock/bin/pip install --quiet --disable-pip-version-check uv
	for of in "constraints.txt pyproject.toml --extra dev" "deploy/constraints.txt pyproject.toml --extra nacos" \
	    "deploy/build.txt --group build" "deploy/docs.txt --group docs -c constraints.txt" "deploy/release.txt --group release"; do \
	  build/lock/bin/uv pip compile -o $$of --universal --python-version 3.11 --generate-hashes $(if $(UPGRADE),--upgrade) \
	    --quiet --no-header --no-annotate --no-emit-index-url; done

dist: ## build wheel and sdist into dist/, with their list of parts, and try them in a clean environment
	$(PYTHON) -m venv build/release
	build/release/bin/$(PIP) -r deploy/release.txt
	build/release/bin/python -m tools.dist $(DIST)

sbom: venv ## write what a release consists of to build/sbom.json (CycloneDX)
	$(BIN)/python -m tools.sbom deploy/constraints.txt build/sbom.json

audit: venv ## ask for known vulnerabilities of what is pinned; says so where they cannot be had
	$(BIN)/python -m tools.audit constraints.txt

clean: ## remove what these commands made
	rm -rf $(VENV) $(BENCH_VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
