#!/bin/sh
# Style, types and import contracts; each must be clean.
set -eu
cd "$(dirname "$0")/.."
ruff check .
ruff format --check .
mypy
lint-imports --no-cache
