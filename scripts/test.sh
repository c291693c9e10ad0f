#!/bin/sh
# Three rings of tests:
#   scripts/test.sh check         lint, types, contracts, unit tests, plain C tests: before each commit
#   scripts/test.sh test [ARGS]   and functional tests, and the native core under sanitizers (ARGS are pytest's)
#   scripts/test.sh outside       what `make test-all` adds: long tests, lab machines, browsers, readers of other
#                                 languages, users
# Each prints its ten slowest tests and its time. Unit tests run in as many processes as there are CPUs, functional tests
# in one more (TEST_WORKERS: another number for both); tests/outside and tests/lab have the machine to themselves.
set -eu
cd "$(dirname "$0")/.."
unset NO_COLOR COLORTERM 2>/dev/null || :
# Byte code is kept: many tests start Python anew, and each worker would compile and rewrite all tests for itself.
unset PYTHONDONTWRITEBYTECODE 2>/dev/null || :
workers=${TEST_WORKERS:-logical}
# A functional test waits for a third of its time (for processes, for a screen to come to rest): one worker more uses it.
functional_workers=${TEST_WORKERS:-$(($(getconf _NPROCESSORS_ONLN) + 1))}
told=

# ring NAME FUNCTION…: run it and note how long it took. Within a condition `set -e` is off: functions join by &&.
ring() {
    name=$1
    shift
    began=$(date +%s)
    "$@" || exit $?
    told="$told$name: $(($(date +%s) - began)) s
"
}

# A folder in memory for what the tests write, where there is one that runs programs: a ring writes some 100,000 small
# files, which takes a disk a minute. Without one, pytest's own folder below /tmp is as good and slower.
scratch=$(mktemp -d /dev/shm/jitter-workshop-tests.XXXXXX 2>/dev/null || :)
if [ -n "$scratch" ]; then
    trap 'rm -rf "$scratch"' EXIT
    trap 'kill $(jobs -p) 2>/dev/null; exit 130' INT TERM HUP
    printf '#!/bin/sh\n' >"$scratch/probe"
    chmod +x "$scratch/probe"
    [ "$(df -Pk "$scratch" | awk 'NR == 2 { print $4 }')" -ge 2097152 ] && "$scratch/probe" 2>/dev/null || {
        rm -rf "$scratch"
        scratch=
    }
fi

parallel() { # parallel WORKERS TESTS…: groups begin in the order that tests/conftest.py gives them
    numprocesses=$1
    shift
    [ -z "$scratch" ] || set -- --basetemp="$scratch/pytest" "$@"
    python -m pytest --durations=10 --numprocesses="$numprocesses" --dist=loadgroup --no-loadscope-reorder "$@"
}

check() { sh scripts/lint.sh && sh scripts/test-native.sh plain && parallel "$workers" tests/unit; }

# Functional tests leave a tenth of the CPUs' time, and the sanitizers' suites take it: built and run beside them, with
# less right to a CPU. What they say is shown at the end.
more() {
    said=$(mktemp)
    nice -n 5 sh scripts/test-native.sh sanitizers >"$said" 2>&1 &
    sanitizers=$!
    parallel "$functional_workers" tests/functional tests/native "$@" && passed=0 || passed=$?
    wait "$sanitizers" || passed=$?
    cat "$said"
    rm -f "$said"
    return "$passed"
}

# Tests that are long, and those of which `make test` does a part; then other programs and the lab machine. Its kernels
# are fetched the first time only; one line says what to install where it cannot run.
outside() {
    WHOLE=1 parallel "$workers" -m "(long or part) and not soak" tests/functional &&
        python -m tests.lab.fetch && python -m pytest --durations=10 tests/outside tests/lab
}

which=${1:-test}
[ $# -eq 0 ] || shift
case $which in
check) ring check check ;;
test)
    ring check check
    ring test more "$@"
    ;;
outside) ring outside outside ;;
*)
    echo "unknown ring $which: check, test or outside" >&2
    exit 2
    ;;
esac
printf '%s' "$told"
