#!/bin/sh
# The native core under the sanitizers, with warnings as errors; what cannot be run here is skipped in plain sight.
#   scripts/test-native.sh            build in a temporary folder, run all suites
#   scripts/test-native.sh plain      only the plain suite: the fast one
#   scripts/test-native.sh sanitizers all but that
#   CC=clang scripts/test-native.sh   another compiler
set -u
cd "$(dirname "$0")/.." || exit 2
CC=${CC:-cc}
CROSS=${CROSS:-aarch64-linux-gnu-gcc}
STRICT="-std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -Wpedantic -Wshadow -Wconversion -Wsign-conversion
 -Wstrict-prototypes -Wmissing-prototypes -Wcast-qual -Wpointer-arith -Wundef -Wvla -Wformat=2"
SOURCES=$(ls native/*.c | grep -v '/_')
failed=0

command -v "$CC" >/dev/null 2>&1 || { echo "skip: no C compiler ($CC)"; exit 0; }
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# Can this compiler build and run a program with these flags?
usable() {
    echo 'int main(void) { return 0; }' >"$work/probe.c"
    # shellcheck disable=SC2086
    "$CC" $1 -o "$work/probe" "$work/probe.c" >/dev/null 2>&1 && "$work/probe" >/dev/null 2>&1
}

# One library a suite, its sources compiled side by side; each test is linked with it.
suite() {
    name=$1
    flags=$2
    if ! usable "$flags"; then
        echo "skip: $name ($CC has no runtime for it)"
        return
    fi
    built=$(mktemp -d "$work/suite.XXXXXX")
    # shellcheck disable=SC2086
    if ! printf '%s\n' $SOURCES tests/native/c/test_*.c |
        xargs -P "$(getconf _NPROCESSORS_ONLN)" -I{} sh -c '
            object=$1/$(basename "$2" .c).o
            shift 2
            exec "$@" -c -o "$object"' compile "$built" {} "$CC" $STRICT $flags -Inative {}; then
        echo "FAILED to build: $name"
        failed=1
        return
    fi
    objects=$(for source in $SOURCES; do echo "$built/$(basename "$source" .c).o"; done)
    export objects
    # They wait more than they work: a test is linked and run for each CPU at a time.
    # shellcheck disable=SC2086
    printf '%s\n' tests/native/c/test_*.c |
        xargs -P "$(getconf _NPROCESSORS_ONLN)" -I{} sh -c '
            name=$1 built=$2 source=$3 program=$(basename "$3" .c)
            shift 3
            # A test may replace a function of the library by its own: the first line of its file says which.
            wrapped=$(sed -n "1s|^/\* link: \(.*\) \*/$|\1|p" "$source")
            if ! "$@" $wrapped -o "$built/$program" "$built/$program.o" $objects -lpthread -ldl; then
                echo "FAILED to link: $name, $program"
                exit 1
            elif ! timeout 120 "$built/$program"; then
                echo "FAILED: $name, $program"
                exit 1
            fi
            echo "ok: $name, $program"' run "$name" "$built" {} "$CC" $flags || failed=1
}

which=${1:-all}
# The plain suite has the checks of a distribution's build, by which the compiler refuses more.
[ "$which" = sanitizers ] || suite "plain" "-O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2"
[ "$which" = plain ] && exit "$failed"
suite "address and undefined behaviour" "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all"
suite "threads" "-O1 -g -fsanitize=thread"

if command -v "$CROSS" >/dev/null 2>&1; then
    for source in $SOURCES; do
        # shellcheck disable=SC2086
        "$CROSS" $STRICT -O2 -Inative -c -o "$work/cross.o" "$source" || { echo "FAILED for arm64: $source"; failed=1; }
    done
    [ "$failed" -eq 0 ] && echo "ok: builds for arm64"
else
    echo "skip: build for arm64 (no $CROSS)"
fi
exit "$failed"
