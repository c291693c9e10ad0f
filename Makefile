# Every target is one line of scripts/workshop.sh, which works without make, too.
.PHONY: workshop check test test-all test-native lint mutants bench soak test-pythons dist deb rpm clean
.DEFAULT_GOAL := workshop

workshop: ## environment, native build, start (ARGS="--plain" and so on)
	@sh scripts/workshop.sh start $(ARGS)

check: ## lint, types, contracts, unit tests, plain C tests: before each commit
	@sh scripts/workshop.sh check

test: ## and functional tests, the native core under sanitizers
	@sh scripts/workshop.sh test

test-all: test ## and lab machines, browsers, readers of other languages, other users: all that this machine can run
	@sh scripts/workshop.sh test-outside

test-native: ## the native core under sanitizers
	@sh scripts/workshop.sh exec sh scripts/test-native.sh

lint: ## style, types and import contracts
	@sh scripts/workshop.sh exec sh scripts/lint.sh

mutants: ## faults put in on purpose, which the unit tests of their own room have to find (ARGS="stats -k sample_size")
	@sh scripts/workshop.sh exec python -m tests.mutants $(ARGS)

bench: ## the project's own benchmarks: ratios from one run
	@sh scripts/workshop.sh exec python -m tests.bench $(ARGS)

soak: ## long kills and fuzzing, and what the lab machine does beyond make test
	@sh scripts/workshop.sh exec python -m tests.lab.fetch --all
	@MODEL_EXAMPLES=500 sh scripts/workshop.sh exec python -m pytest -ra tests/unit/test_tuning_restore_model.py
	@EXAMPLES=1000 sh scripts/workshop.sh exec python -m pytest -ra -m hypothesis tests/unit tests/functional tests/native
	@sh scripts/workshop.sh exec python -m pytest -ra tests/soak
	@sh scripts/workshop.sh exec python -m pytest -ra -m soak tests/lab tests/functional tests/outside
	@$(MAKE) test-pythons

test-pythons: ## make test by each other Python that this machine has (one alone: make test PYTHON=3.13)
	@for version in 3.12 3.13; do \
		PYTHON=$$version sh scripts/workshop.sh exec true || { echo "skip: no Python $$version" >&2; continue; }; \
		PYTHON=$$version sh scripts/workshop.sh test || exit 1; \
	done

dist: ## wheels, a source distribution, a Debian package and an RPM in dist/ (ARGS="--out FOLDER")
	@sh scripts/workshop.sh dist $(ARGS)

deb: ## the Debian package alone
	@sh scripts/workshop.sh package deb $(ARGS)

rpm: ## the RPM alone
	@sh scripts/workshop.sh package rpm $(ARGS)

clean:
	rm -rf .venv .venv.* build dist *.egg-info
