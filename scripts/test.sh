#!/bin/sh
# All tests that this machine can run: lint, the native core under sanitizers, then pytest (its arguments follow).
set -eu
cd "$(dirname "$0")/.."
unset NO_COLOR COLORTERM 2>/dev/null || :
sh scripts/lint.sh
sh scripts/test-native.sh
# Kernels for the lab machine, the first time only; one line says what to install where it cannot run.
python -m tests.lab.fetch
exec python -m pytest "$@"
