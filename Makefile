# Every target makes its own .venv from what the system has; nothing is done twice while pyproject.toml and constraints.txt are
# unchanged. It needs Python 3.11 or newer, make, and a compiler where a package has no wheel.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
TOOLS := build/tools

.PHONY: up test test-pythons test-oldest test-slow lint format docs reference screenshots picture site site-version man wheel wheel-test parity parity-devices parity-groups freeze bench envtest field-programs soak jitter rest explore fuzz lock sbom root-file-system clean

# `make test PYTHON=python3.12` means that interpreter: .venv is made anew if it has another one.
VERSION_OF = $(shell $(1) -c 'import sys; print(sys.version)' 2>/dev/null)
ifeq ($(origin PYTHON),command line)
ifneq ($(call VERSION_OF,$(PYTHON)),$(call VERSION_OF,$(BIN)/python))
ANEW := anew
endif
endif
.PHONY: anew

# One set of versions for every Python from 3.11 on, that of the build backend included: what others release breaks nothing here.
# Older pips read the first name for what they build too, newer ones the second.
CONSTRAINED := PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt

# $(call install,WHAT): pip's lines go into a log, of which a failure shows the end.
define install
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 11) and "Navarch needs Python 3.11 or newer; $(PYTHON) is %d.%d. Name another one: make $(or $(MAKECMDGOALS),up) PYTHON=python3.12" % v[:2])'
	@test -z "$(ANEW)" -a -x $(BIN)/python || $(PYTHON) -m venv --clear $(VENV)
	@$(CONSTRAINED) $(BIN)/python -m pip install --editable $(1) > $(VENV)/install.log 2>&1 || \
	    { tail -n 30 $(VENV)/install.log; echo "The installation failed. Its whole log: $(VENV)/install.log"; exit 1; } >&2
	@touch $@
endef

$(STAMP): pyproject.toml constraints.txt $(ANEW)
	@echo "Installing Navarch, what it needs and the tools of its tests into $(VENV); this happens once and takes some minutes."
	$(call install,'.[dev]')

# A cluster to try needs what Navarch needs to run, and none of the tools of its developers.
RUNTIME := $(VENV)/.runtime
$(RUNTIME): pyproject.toml constraints.txt $(ANEW)
	@echo "Installing Navarch and what it needs into $(VENV); this happens once and takes about a minute."
	$(call install,.)

up: $(if $(wildcard $(STAMP)),$(STAMP),$(RUNTIME))
	@$(BIN)/navarch up

lint: $(STAMP)
	$(BIN)/ruff check src tests bench
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff format src tests bench
	$(BIN)/ruff check --fix src tests bench

# Four workers, on two cores too: two run suites that wait for servers, and two those that compute (tests/distribution.py). Processes
# that tests start read compiled modules, also where the environment forbids to write them. FAILED_TESTS names a file that receives the
# ids of failed tests, one a line (.ci/run reads it); `make test` itself never retries. TESTED is a part of the suite, as tests/unit.
FAILED_TESTS ?=
TESTED ?=
test: lint
	PYTHONDONTWRITEBYTECODE= FAILED_TESTS=$(FAILED_TESTS) $(BIN)/pytest -n 4 --dist loadfile -m "not slow" $(TESTED)

# The same on every interpreter from 3.11 on that the machine has, each in an environment of its own below build/pythons.
test-pythons:
	@set -e; $(PYTHON) tests/pythons.py | while read -r version python; do \
	    echo "Python $$version: $$python"; $(MAKE) test PYTHON="$$python" VENV=build/pythons/$$version < /dev/null; \
	done

# Unit tests with the oldest versions that pyproject.toml allows, on the oldest Python. The tools of the tests are new.
OLDEST := build/oldest
test-oldest: $(TOOLS)/bin/uv
	$(TOOLS)/bin/uv pip compile --quiet --no-config --resolution lowest-direct --python-version 3.11 --extra speed -o $(OLDEST).txt pyproject.toml
	$(TOOLS)/bin/uv venv --quiet --clear --python 3.11 $(OLDEST)
	$(TOOLS)/bin/uv pip install --quiet --python $(OLDEST)/bin/python -c $(OLDEST).txt --editable '.[dev]'
	$(OLDEST)/bin/python -m pytest -n 4 --dist loadfile -m "not slow" $(or $(TESTED),tests/unit tests/kube)

test-slow: $(STAMP)
	$(BIN)/pytest -m slow

# The documentation: the reference of plugins, which is made from what the code declares (a test compares), and the site.
docs: reference site
reference: $(STAMP)
	$(BIN)/navarch policy plugins -o markdown > docs/plugins.md

# The documentation as a site in build/site, with search; a broken link is an error. mkdocs lives in a venv of its own.
SITE := build/mkdocs
$(SITE)/bin/mkdocs:
	$(PYTHON) -m venv $(SITE)
	$(CONSTRAINED) $(SITE)/bin/pip install --quiet --editable '.[docs]'
site: $(SITE)/bin/mkdocs
	NO_MKDOCS_2_WARNING=1 $(SITE)/bin/mkdocs build --strict

# The site with one folder a version and a menu of versions, on the local branch gh-pages. Pushing it publishes it.
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
site-version: $(SITE)/bin/mkdocs
	NO_MKDOCS_2_WARNING=1 PATH="$(abspath $(SITE)/bin):$$PATH" $(SITE)/bin/mike deploy --update-aliases $(VERSION) latest
	NO_MKDOCS_2_WARNING=1 PATH="$(abspath $(SITE)/bin):$$PATH" $(SITE)/bin/mike set-default latest

# Man pages of every command in build/man: man -l build/man/navarch-up.1
man: $(STAMP)
	$(BIN)/python docs/tools/man_pages.py build/man

# The wheel in dist/, and a test that installs one into an empty environment and starts a cluster there.
wheel: $(STAMP)
	$(CONSTRAINED) $(BIN)/python -m pip wheel --no-deps --wheel-dir dist .
wheel-test: $(STAMP)
	$(BIN)/pytest -m slow tests/deploy/test_wheel.py

# The pictures of docs/dashboard.md, taken by the browser tests.
screenshots: $(STAMP)
	NAVARCH_SCREENSHOTS=docs/images $(BIN)/pytest -q tests/browser/test_screenshots.py

# The moving picture of README, from a real run of `navarch up`.
picture: $(STAMP)
	$(BIN)/python docs/tools/moving_picture.py docs/images/up.svg

bench: $(STAMP)
	$(BIN)/python -m bench

# Histories with faults on both servers: make soak HISTORIES=1000 SEED=1, or for as long as told: make soak MINUTES=60. A run that was
# stopped goes on where it ended (build/soak.jsonl). PROCESSES=3 runs three histories at the same time.
PROCESSES ?= 1
HISTORIES ?= 0
MINUTES ?= 10
SEED ?= 1
soak: $(STAMP)
	$(BIN)/python -m tests.live.soak --histories $(HISTORIES) $(if $(filter 0,$(HISTORIES)),--minutes $(MINUTES)) --seed $(SEED) --processes $(PROCESSES)

# Random clusters, each decided by the kube-scheduler that `make envtest` built and by ours: make parity SEED=7 CASES=50
CASES ?= 20
parity: $(STAMP)
	$(BIN)/python -m tests.parity.live_kube_scheduler --seed $(SEED) --cases $(CASES)
# The same for claims on devices.
parity-devices: $(STAMP)
	$(BIN)/python -m tests.parity.live_device_claims --seed $(SEED) --cases $(CASES)

# The same for groups of scheduling.k8s.io
parity-groups: $(STAMP)
	$(BIN)/python -m tests.parity.live_groups --seed $(SEED) --cases $(CASES)

# The digests of decisions, statuses and words that tests/freeze compares: after a change of some of them on purpose.
freeze: $(STAMP)
	$(BIN)/python -m tests.freeze

# Tests whose processes are stopped and let go at random, to find those that hold by luck: make jitter TESTS=tests/live SEED=2
TESTS ?= tests
jitter: $(STAMP)
	$(BIN)/python -m tests.jitter --seed $(SEED) -- $(BIN)/pytest -n 2 --dist loadfile -m "not slow" $(TESTS)

# Random clusters until nothing is evicted any more, for every policy that evicts: make rest CLUSTERS=2000 SEED=0
CLUSTERS ?= 2000
rest: $(STAMP)
	$(BIN)/python -m tests.rest --clusters $(CLUSTERS) --seed $(SEED)

# New random examples for the property tests, again and again until the minutes are over or one fails: make explore MINUTES=60
explore: $(STAMP)
	@end=$$(( $$(date +%s) + 60 * $(MINUTES) )); while [ $$(date +%s) -lt $$end ]; do \
	    HYPOTHESIS_PROFILE=explore $(BIN)/pytest -n 2 -m "hypothesis and not slow" -q || exit 1; \
	done

# Mutated requests and objects, 100,000 each: make fuzz FUZZ="--seed 7 --requests 1000"
FUZZ ?=
fuzz: $(STAMP)
	$(BIN)/python -m tests.fuzz $(FUZZ)

# The versions that everything here is installed in (constraints.txt, all Pythons), and those of the image with their hashes. They are
# renewed by this target alone. `make sbom` lists what the image has, as CycloneDX (build/sbom.json).
$(TOOLS)/bin/uv:
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/pip install --quiet --disable-pip-version-check uv cyclonedx-bom
COMPILE := $(TOOLS)/bin/uv pip compile --quiet --no-config --upgrade --annotation-style line --custom-compile-command 'make lock'
lock: $(TOOLS)/bin/uv
	printf 'hatchling\neditables\n' | $(COMPILE) --universal --python-version 3.11 --all-extras -o constraints.txt pyproject.toml -
	$(COMPILE) --python-version 3.13 --extra speed --generate-hashes -c constraints.txt -o deploy/requirements.lock pyproject.toml
sbom: $(TOOLS)/bin/uv
	$(TOOLS)/bin/cyclonedx-py requirements deploy/requirements.lock -o build/sbom.json

# The real programs that Navarch lives beside, built with Go into ~/.cache/navarch; at once when nothing changed. PROGRAMS=volcano: that one.
PROGRAMS ?=
field-programs: $(STAMP)
	$(BIN)/python -m tests.field.build $(PROGRAMS)

# A root file system with what the image has, which tests run read-only; needs root, and mmdebstrap and bubblewrap from Debian.
ROOT_FILE_SYSTEM ?= $(HOME)/.cache/navarch/root
root-file-system:
	deploy/root-file-system.sh $(ROOT_FILE_SYSTEM)

# A real kube-apiserver and kube-scheduler for the live suites, and helm for the chart, built with Go into ~/.cache/navarch;
# at once when nothing changed.
envtest: $(STAMP)
	$(BIN)/python -m tests.envtest.build

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
