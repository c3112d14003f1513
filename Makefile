# Needs Python 3.11 or newer and make; everything else is installed into .venv and node_modules.
# `make` alone lists the targets.

PYTHON    ?= python3
SETTINGS  ?= endpoint.yaml
ARGS      ?=
# Processes that run tests. One more than two cores: a part of the suite's time is waiting.
WORKERS   ?= 3
# Shuffles the tests: make test SEED=1. CI takes another seed each time and prints it.
SEED      ?=
# `make deploy` asks the account first whether it would work; PREFLIGHT=no leaves that out.
PREFLIGHT ?= yes
# What an hour costs, where the settings do not say it: PRICES="ml.g5.xlarge=1.00 ..." in USD.
PRICES    ?=

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
# Relative, as make works in this folder: the path to it may have spaces.
BIN  := $(VENV)/bin
CDK  := node_modules/.bin/cdk
export PATH := $(CURDIR)/$(BIN):$(PATH)

# jsii unpacks 100 MB of CDK for every process unless it may keep them.
export JSII_RUNTIME_PACKAGE_CACHE := enabled
export CDK_DISABLE_CLI_TELEMETRY  := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# The machine's certificate authorities, as pip: behind a proxy that breaks up TLS uv and npm fail else.
export UV_SYSTEM_CERTS := 1
# uv leaves compiling to the first import; where nothing may be kept, every process compiles 100 MB.
unexport PYTHONDONTWRITEBYTECODE

# Demo, tests and benchmarks may never reach a real account: no AWS_* variable of the caller's
# reaches them, and the SDK's configuration files are out of sight.
OFFLINE := env $(foreach name,$(filter AWS_%,$(.VARIABLES)),-u $(name)) \
	AWS_CONFIG_FILE=/dev/null AWS_SHARED_CREDENTIALS_FILE=/dev/null AWS_EC2_METADATA_DISABLED=true \
	BOTO_CONFIG=/dev/null

.PHONY: help
help:  ## List the targets
	@echo "Usage: make <target>"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

##@ Install

.PHONY: setup
setup: $(VENV)/.installed-dev node_modules/.installed  ## Install everything into .venv and node_modules
	@echo "Ready: $$(python --version), Node.js $$(node --version), CDK CLI $$($(CDK) --version)"

$(VENV)/bin/python:
	@command -v "$(PYTHON)" >/dev/null || { \
	  echo "No '$(PYTHON)' on this machine. Install Python 3.11 or newer, or name it: make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "'$(PYTHON)' is $$("$(PYTHON)" --version); Python 3.11 or newer is needed. Name another: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "Creating the virtual environment $(VENV) with $$("$(PYTHON)" --version)"
	@"$(PYTHON)" -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "Python's venv module did not work. On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@$(call pin,uv,requirements-dev.txt)
	@$@ -m pip install --quiet -r $(VENV)/pin.txt || true

# $(call pin,NAME,FILE): one package of a requirements file, with its hashes, as a file.
pin = sed -n '/^$(1)==/,/[^\\]$$/p' $(2) > $(VENV)/pin.txt

# What is ours has no hash: it is installed from its folder.
compiled := --no-emit-package low-latency-client --universal --python-version 3.11 --quiet --no-header --generate-hashes \
	--no-strip-extras --no-annotate --no-emit-index-url

# $(call install,ARGUMENTS): uv installs in seconds what pip takes two minutes for, nearly all of it
# byte code. pip does it where uv cannot: an index of packages that only pip's settings name.
install = { [ -x $(BIN)/uv ] && $(BIN)/uv pip install --quiet --python $(BIN)/python $(1); } \
	|| { echo "Installing with pip instead of uv"; $(BIN)/python -m pip install --quiet $(1); }

# What `make deploy` needs; the rest of the tools only when a target asks for them. aws-cdk-lib brings
# aws_cdk/cloud_assembly_schema once more, and its own is the one that has to stay: uv installs in
# any order, so the package of that name comes before. A checkout has no hash: what is ours is
# installed by itself, with the pinned hatchling.
$(VENV)/.installed: $(VENV)/bin/python requirements.txt pyproject.toml client/pyproject.toml
	@echo "Installing the deploy set: AWS CDK, Node.js, boto3, the library and its client"
	@$(call pin,aws-cdk-cloud-assembly-schema,requirements.txt)
	@$(call install,--no-deps -r $(VENV)/pin.txt)
	@$(call install,-r requirements.txt)
	@$(call install,--no-deps --no-build-isolation -e . -e ./client)
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed requirements-dev.txt local_sagemaker/pyproject.toml
	@echo "Installing the tools for demo, tests and benchmarks"
	@$(call install,-r requirements-dev.txt)
	@$(call install,--no-deps --no-build-isolation -e ./local_sagemaker)
	@touch $@

node_modules/.installed: $(VENV)/.installed package.json package-lock.json
	@echo "Installing the AWS CDK CLI with npm"
	@NODE_USE_SYSTEM_CA=1 $(BIN)/npm ci --no-audit --no-fund --loglevel=error
	@touch $@

##@ Without an AWS account

.PHONY: demo
demo: setup  ## Deploy into a local AWS, read back, change, destroy: no AWS account
	@$(OFFLINE) python -m examples.demo $(ARGS)

# $(call pytest,MARKS): ARGS=--durations lists the dearest tests; the last line has the times of all.
pytest = TIMEFORMAT="%1R s, %1U + %1S s of processor time$(if $(SEED), in the order of SEED=$(SEED))"; time \
	$(OFFLINE) pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m $(1) \
	$(if $(SEED),-p randomly --randomly-seed=$(SEED) --randomly-dont-reset-seed) \
	$(patsubst --durations,--durations=50,$(ARGS))

.PHONY: test
test: setup  ## Run the test suite but for what needs real time or the night (ARGS="-k network" for a part)
	@$(call pytest,"$(if $(NIGHTLY),not realtime,not realtime and not nightly)")

# By path: what nearly every change touches, plans, settings and templates. Not what starts processes
# or computes for long: simulation, load tests, the local AWS, commands in a hostile world.
FAST := constructs/low_latency_endpoint tests/facts tests/monitoring tests/options tests/plan tests/settings \
	tests/warm_up tests/cli/test_cli.py tests/cli/test_error_docs.py tests/synth/test_settings_stack.py \
	tests/synth/test_snapshots.py

# What asks something of a new option, limit or rule, and says what to add and where.
OF_OPTIONS := tests/settings/test_reference.py tests/settings/test_mistakes.py tests/settings/test_limits.py tests/options \
	tests/facts/test_limits_against_botocore.py tests/cli/test_error_docs.py tests/docs/test_from_other_tools.py \
	tests/synth/test_tokens_of_options.py tests/synth/test_read_options.py tests/synth/test_limits_of_arguments.py \
	tests/synth/test_bad_input.py::test_every_rule_is_tried_here_or_said_to_be_elsewhere

.PHONY: test-option
test-option: setup  ## Run what a new setting needs, and the updates of OPTION=its_name
	@status=0; $(call pytest,"not realtime and not nightly") $(OF_OPTIONS) || status=$$?; \
	$(if $(OPTION),$(OFFLINE) pytest -p no:xdist -m "not realtime" -k "$(OPTION)" tests/synth/test_updates.py || status=$$?;) \
	exit $$status

.PHONY: test-fast
test-fast: setup  ## Run rules, plans, settings and templates: some four and a half minutes of processor time
	@$(call pytest,"not realtime and not nightly") $(FAST)

# $(call alone,FOLDER,PROJECTS): the suite of one distribution in an environment of its own, with the
# versions of requirements-dev.txt.
alone = $(BIN)/python -m venv $(VENV)/alone/$(1) && \
	$(BIN)/uv pip install --quiet --python $(VENV)/alone/$(1)/bin/python --constraints requirements-dev.txt \
	  --group $(1)/pyproject.toml:test $(2) && \
	cd $(1) && $(OFFLINE) "$(CURDIR)/$(VENV)/alone/$(1)/bin/python" -m pytest -n $(WORKERS) \
	  -m "not realtime and not nightly" $(ARGS)

.PHONY: test-client
test-client: $(VENV)/bin/python  ## Run the client's suite where nothing of the library is installed
	@$(call alone,client,-e ./client -e ./local_sagemaker)

.PHONY: test-local-sagemaker
test-local-sagemaker: $(VENV)/bin/python  ## Run the local AWS's suite where nothing of the library is installed
	@$(call alone,local_sagemaker,-e ./local_sagemaker)

# NIGHTLY=1 runs every case of what the day samples, with ten times the examples.
export NIGHTLY

.PHONY: test-realtime
test-realtime: setup  ## Run what starts processes, measures or waits in real time
	@$(OFFLINE) pytest -n $(WORKERS) --dist worksteal -m realtime $(ARGS)

.PHONY: nightly
nightly: setup  ## Run what takes hours, and print a table of it (ARGS=bench for a part)
	@python -m tools.benchmarks.nightly $(ARGS)

.PHONY: fuzz
fuzz: setup  ## Plan made-up settings files, synthesise some (COUNT=20000 SYNTH=1000 SEED=0)
	@$(OFFLINE) python -m tools.fuzzing --count $(or $(COUNT),20000) --synth $(or $(SYNTH),1000) \
	  --seed $(or $(SEED),0)

.PHONY: fuzz-smoke
fuzz-smoke:  ## Some seconds of it, with other seeds each time: what fails is printed with its seed
	@$(MAKE) --no-print-directory fuzz COUNT=200 SYNTH=5 SEED=$$(date +%s)

.PHONY: bench
bench: setup  ## Measure synthesis, imports, commands, clients, simulator and load generator, as ratios
	@$(OFFLINE) python -m tools.benchmarks $(ARGS)

.PHONY: bench-smoke
bench-smoke: setup  ## Run every benchmark once at its smallest size: does it still run?
	@$(OFFLINE) BENCH_SMALLEST=1 python -m tools.benchmarks $(ARGS)

##@ Against the AWS account of your environment

.PHONY: bootstrap
bootstrap: $(VENV)/.installed node_modules/.installed  ## Prepare your AWS account and Region for the CDK, once
	@$(CDK) bootstrap -c settings="$(SETTINGS)" $(ARGS)

.PHONY: deploy
deploy: $(VENV)/.installed node_modules/.installed  ## Say cost and minutes, preflight (unless PREFLIGHT=no), deploy SETTINGS
	@low-latency plan --settings "$(SETTINGS)" --cost --minutes $(addprefix --price ,$(PRICES))
ifneq ($(PREFLIGHT),no)
	$(if $(filter --profile%,$(ARGS)),$(error Preflight and the CDK must ask the same account: \
	  AWS_PROFILE=... make deploy))
	@low-latency preflight --settings "$(SETTINGS)" --quiet --wait 15m || { echo "Not deployed. Fix what fails \
	above, or deploy all the same: make deploy PREFLIGHT=no. What CloudFormation checks itself, without a deploy: \
	npx cdk validate -c settings=$(SETTINGS)" >&2; exit 1; }
endif
	@$(CDK) deploy --all -c settings="$(SETTINGS)" $(ARGS)

.PHONY: synth
synth: $(VENV)/.installed node_modules/.installed  ## Write the templates of SETTINGS into cdk.out: no AWS account, but to look up a VPC
	@$(CDK) synth --quiet -c settings="$(SETTINGS)" $(ARGS)
	@echo "Templates: cdk.out/*.template.json"

.PHONY: diff
diff: $(VENV)/.installed node_modules/.installed  ## Show what `make deploy` would change
	@$(CDK) diff -c settings="$(SETTINGS)" $(ARGS) || { echo "No account at hand? 'make synth' and \
	'low-latency plan --against' need none, once cdk.context.json has the VPC that you name." >&2; exit 1; }

.PHONY: destroy
destroy: $(VENV)/.installed node_modules/.installed  ## Delete what `make deploy` created
	@low-latency plan --settings "$(SETTINGS)" --minutes
	@$(CDK) destroy --all -c settings="$(SETTINGS)" $(ARGS)

.PHONY: accept
accept: setup  ## Try the claims in an account: ACCOUNT=, REGION=, BUDGET= (US dollars); ARGS=--yes starts
	@pytest -v -s -m aws -p no:xdist --junitxml=build/acceptance/report.xml \
	  --account="$(ACCOUNT)" --region="$(REGION)" --budget="$(BUDGET)" $(ARGS) tools/acceptance/test_claims.py

##@ Working on the library

.PHONY: lint
lint: $(VENV)/.installed-dev  ## Style, types and import rules; the first run types all of it anew
	@ruff check . && echo "ruff: clean"
	@ruff format --check --quiet . || { echo "ruff format would change files: run it" >&2; exit 1; }
	@mypy
	@lint-imports --no-cache | tail -n 12

.PHONY: size
size: $(VENV)/.installed-dev  ## Print lines and syntax nodes by package, the longest functions, the complexity
	@python -m tools.benchmarks.size

.PHONY: pr
pr: setup lint site fuzz-smoke test test-realtime bench-smoke  ## Everything a pull request must pass

.PHONY: snapshots
snapshots: setup  ## Accept the templates of today as the snapshots
	@$(OFFLINE) pytest tests/synth --snapshot-update $(ARGS)

.PHONY: docs
docs: $(VENV)/.installed-dev  ## Rewrite the generated pages and the JSON schemas
	@python docs/make_settings_tables.py docs/reference/settings.md
	@low-latency schema > endpoint.schema.json
	@low-latency errors --markdown > docs/reference/errors.md
	@python -m docs.make_claims_page docs/reference/seen-on-aws.md
	@python -m docs.make_scanner_table docs/reference/security-checks.md
	@python -m docs.make_deploying_role docs/reference/deploying-role.md
	@$(OFFLINE) python -m docs.make_rights_page docs/reference/rights-in-your-account.md
	@$(OFFLINE) python -m docs.make_pictures docs/images
	@$(OFFLINE) python -m docs.make_permissions_page docs/reference/permissions.md
	@python -m docs.make_reference_pages
	@python local_sagemaker/tests/extract_schemas.py
	@git --no-pager diff --stat -- docs endpoint.schema.json '*/resource_types.json'

.PHONY: site
site: $(VENV)/.installed-dev  ## Build the docs site into site/; every warning is an error
	@NO_MKDOCS_2_WARNING=1 mkdocs build > $(VENV)/site.log 2>&1 || { grep -v ^INFO $(VENV)/site.log >&2; exit 1; }
	@echo "Built site/index.html: open it in a browser, no server is needed"

.PHONY: checkov
checkov: setup  ## Compare tests/synth/scanner_rules.yaml with checkov itself, installed apart from the tests
	@python -m venv $(VENV)/checkov && $(VENV)/checkov/bin/pip install --quiet \
	  checkov==$$(sed -n 's/^checkov: //p' tests/synth/scanner_rules.yaml)
	@CHECKOV=$(VENV)/checkov/bin/checkov $(OFFLINE) pytest tests/synth/test_validators.py -k checkov $(ARGS)

.PHONY: newer-tags
newer-tags: $(VENV)/.installed-dev  ## Say which images for models of the Hub have a newer tag (asks PyPI)
	@$(OFFLINE) python tests/plan/newer_tags.py

.PHONY: wheel
wheel: $(VENV)/.installed  ## Build three wheels into dist/: the library's, its client's, the local AWS's
	@rm -f dist/*.whl
	@python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist . ./client ./local_sagemaker
	@echo "Built" dist/*.whl

# Of a release; a clone of COMMIT has nothing but what is committed.
DIST    := dist/release
COMMIT  ?= HEAD
# Folder and name of each distribution.
PROJECTS := .:cdk-low-latency-endpoint client:low-latency-client local_sagemaker:local-sagemaker
VERSION ?= $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' constructs/low_latency_endpoint/__init__.py)
# Each distribution has versions of its own: v0.2.0 tags the library, low-latency-client-v0.2.0 its client.
RELEASED = $(or $(if $(findstring -v,$(TAG)),$(firstword $(subst -v, ,$(TAG)))),cdk-low-latency-endpoint)
RELEASED_FOLDER = $(firstword $(subst :, ,$(filter %:$(RELEASED),$(PROJECTS))))
TAGGED = $(patsubst v%,%,$(patsubst $(RELEASED)-v%,%,$(TAG)))
clone    = folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; git clone -qn . "$$folder/clone"; \
	git -C "$$folder/clone" checkout -q --detach "$(COMMIT)"

.PHONY: distributions
distributions: $(VENV)/.installed-dev  ## Build wheels and source distributions of COMMIT (HEAD) into OUT
	@rm -rf "$(or $(OUT),$(DIST))"; export SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct "$(COMMIT)"); $(clone); \
	for project in $(PROJECTS); do \
	  python -m build --no-isolation --outdir "$(or $(OUT),$(DIST))/$${project#*:}" \
	    "$$folder/clone/$${project%:*}" >"$$folder/log" 2>&1 || { cat "$$folder/log" >&2; exit 1; }; \
	done

.PHONY: release-check
release-check: distributions  ## Build them a second time, under another umask, time zone and hash seed: same bytes?
	@umask 077; TZ=Asia/Kolkata PYTHONHASHSEED=2 $(MAKE) --no-print-directory distributions OUT=$(VENV)/again
	@diff -r $(DIST) $(VENV)/again && echo "Two builds from two clones: the same bytes"

.PHONY: release-notes
release-notes:  ## Print what the changelog of a distribution says of TAG, or of what is unreleased
	@changelog="$(patsubst ./%,%,$(RELEASED_FOLDER)/CHANGELOG.md)"; version="$(or $(TAGGED),Unreleased)"; \
	notes=$$(awk -v version="$$version" '/^## / {on = ($$2 == version); next} on' "$$changelog"); \
	[ "$$notes" ] || { echo "$$changelog says nothing below '## $$version'" >&2; exit 1; }; \
	echo "$$notes"

# Versions and hashes are those with which the tests ran; users get the newest within the ranges.
.PHONY: release-dry-run
release-dry-run: setup release-check  ## Make every file of a release of each distribution from HEAD; TAG names one
	@cd $(DIST); ls */*.whl | wc -l | grep -qx 3 || { echo "There are not three wheels" >&2; exit 1; }
	@[ -z "$(TAG)" ] || ls $(DIST)/$(RELEASED)/*"-$(TAGGED)-"*.whl >/dev/null 2>&1 || \
	  { echo "$(RELEASED) is not of version $(TAGGED)" >&2; exit 1; }
	@cd $(DIST); sha256sum */*.whl */*.tar.gz | tee SHA256SUMS
	@$(MAKE) --no-print-directory release-notes > $(DIST)/NOTES.md
	@for project in $(PROJECTS); do \
	  wheel=$$(ls $(DIST)/"$${project#*:}"/*.whl); version=$$(basename "$$wheel" | cut -d- -f2); \
	  sed "s/^dynamic = .*/version = \"$$version\"/" "$${project%:*}/pyproject.toml" > $(VENV)/pyproject.toml; \
	  uv pip compile "$${project%:*}/pyproject.toml" --all-extras --constraints requirements-dev.txt $(compiled) \
	    | python -W ignore -m cyclonedx_py requirements - --pyproject $(VENV)/pyproject.toml --mc-type library --spec-version 1.6 \
	      --output-reproducible --output-file "$(DIST)/$${project#*:}.cdx.json"; \
	done
	@old=$$(git describe --tags --abbrev=0 --match 'v*' HEAD^ 2>/dev/null || true); if [ "$$old" ]; then \
	  $(MAKE) --no-print-directory upgrade-page OLD="$$old"; else \
	  printf '# Upgrade to %s\n\nThis is the first release: there is no version to upgrade from.\n' \
	    "$(VERSION)" > $(DIST)/UPGRADE.md; fi
	@$(MAKE) --no-print-directory release-site
	@echo "Left out, as only jobs of .github/workflows/release.yml do it, for a pushed tag: attest (GitHub's" \
	  "attestations of distributions and SBOMs), publish (the tagged one on PyPI, with its own attestations)," \
	  "github-release (the release with its files), site (pushing the docs to gh-pages)."

# A patch release takes the place of its minor version: 0.1.3 is shown as 0.1. Building runs this
# repository's code, pushing needs the right to write: the job that pushes has nothing but the bundle.
.PHONY: release-site
release-site:  ## Build the docs site of COMMIT beside the published versions, as a bundle
	@mkdir -p $(DIST); export NO_MKDOCS_2_WARNING=1 GIT_AUTHOR_NAME=release GIT_AUTHOR_EMAIL=release \
	  GIT_COMMITTER_NAME=release GIT_COMMITTER_EMAIL=release; bundle=$$(realpath $(DIST))/site.bundle; $(clone); \
	published=$$(git for-each-ref --format='%(refname)' refs/remotes/origin/gh-pages refs/heads/gh-pages | tail -1); \
	here=$$PWD; cd "$$folder/clone"; [ -z "$$published" ] || git fetch -q "$$here" "+$$published:gh-pages"; \
	mike deploy --branch gh-pages --update-aliases "$(basename $(VERSION))" latest >/dev/null; \
	mike set-default --branch gh-pages latest; git bundle create -q "$$bundle" gh-pages

.PHONY: upgrade-page
upgrade-page: setup  ## What an upgrade from revision OLD to NEW (HEAD) does to the examples' stacks
	@mkdir -p $(DIST); $(OFFLINE) python -m tools.release.upgrade "$(OLD)" "$(or $(NEW),HEAD)" > $(DIST)/UPGRADE.md
	@echo "Wrote $(DIST)/UPGRADE.md"

.PHONY: pins
pins: $(VENV)/.installed-dev  ## Rewrite the requirements files, with hashes (UPGRADE=1 for newer versions)
	@for set in "requirements.txt --extra operations --group deploy" "requirements-dev.txt client/pyproject.toml local_sagemaker/pyproject.toml --all-extras --group dev"; do \
	  read -r file options <<<"$$set"; \
	  grep -E '^#' $$file > $(VENV)/head.txt; \
	  grep -vE '^#' $$file > $(VENV)/pins.txt; \
	  uv pip compile pyproject.toml $$options $(compiled) $(if $(UPGRADE),--upgrade) \
	    --output-file $(VENV)/pins.txt >/dev/null; \
	  cat $(VENV)/head.txt $(VENV)/pins.txt > $$file; echo "wrote $$file"; \
	done
	@image=constructs/low_latency_endpoint/load_test/container/requirements.txt; \
	grep '^#' $$image > $(VENV)/pins.txt; \
	sed -n 's/==.*//p' $$image | while read -r name; do \
	  sed -n "/^$${name/[/\\[}==/,/[^\\\\]$$/p" requirements-dev.txt >> $(VENV)/pins.txt; \
	done; cp $(VENV)/pins.txt $$image; echo "wrote $$image"

.PHONY: clean
clean:  ## Remove everything that setup and the builds made
	rm -rf $(VENV) node_modules cdk.out build dist site .*_cache .hypothesis
