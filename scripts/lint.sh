#!/bin/sh
# Style, types and import contracts; each must be clean. They run side by side, and each prints what it found at its end.
set -eu
cd "$(dirname "$0")/.."
. scripts/beside.sh
trap end_all EXIT
trap 'exit 130' INT TERM HUP

calls() { mypy --config-file tests/mypy.ini --cache-dir .mypy_cache/calls -p tests.lab -p tests.outside -p tests.soak; }
style() { ruff check . && ruff format --check . && python scripts/prose.py; }

# Types take longest.
begin types mypy
begin calls calls
begin style style
begin contracts lint-imports --no-cache
finish types calls style contracts
