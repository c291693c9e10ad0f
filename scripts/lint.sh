#!/bin/sh
# Style, types and import contracts; each must be clean. They run side by side, and each prints what it found at its end.
set -eu
cd "$(dirname "$0")/.."
told=$(mktemp -d)
trap 'rm -rf "$told"' EXIT
trap 'exit 130' INT TERM HUP

style() { ruff check . && ruff format --check . && python scripts/prose.py; }

# begin NAME COMMAND…: run it beside the others, and keep what it prints
begin() {
    name=$1
    shift
    ("$@" >"$told/$name" 2>&1 || touch "$told/$name.failed") &
}

# Types take longest.
begin types mypy
begin style style
begin contracts lint-imports --no-cache
wait
# What failed comes last, where it is seen.
failed=
for name in style types contracts; do
    if [ -e "$told/$name.failed" ]; then failed="$failed $name"; else cat "$told/$name"; fi
done
for name in $failed; do cat "$told/$name"; done
[ -z "$failed" ]
