#!/bin/sh
# Style, types and import contracts; each must be clean.
set -eu
cd "$(dirname "$0")/.."
ruff check .
ruff format --check .
mypy
python scripts/prose.py
lint-imports --no-cache
