# Every target is one line of scripts/workshop.sh, which works without make, too.
.PHONY: workshop test test-native lint bench soak clean
.DEFAULT_GOAL := workshop

workshop: ## environment, native build, start (ARGS="--plain" and so on)
	@sh scripts/workshop.sh start $(ARGS)

test: ## all tests that this machine can run
	@sh scripts/workshop.sh test

test-native: ## the native core under sanitizers
	@sh scripts/workshop.sh exec sh scripts/test-native.sh

lint: ## style, types and import contracts
	@sh scripts/workshop.sh exec sh scripts/lint.sh

bench: ## the project's own benchmarks: ratios from one run
	@sh scripts/workshop.sh exec python -m tests.bench $(ARGS)

soak: ## long kills and fuzzing, and what the lab machine does beyond make test
	@sh scripts/workshop.sh exec python -m tests.lab.fetch --all
	@sh scripts/workshop.sh exec python -m pytest -ra tests/soak
	@sh scripts/workshop.sh exec python -m pytest -ra -m soak tests/lab tests/functional

clean:
	rm -rf .venv build *.egg-info
