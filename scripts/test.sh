#!/bin/sh
# Three rings of tests:
#   scripts/test.sh check         lint, types, contracts, unit tests, plain C tests: before each commit
#   scripts/test.sh test [ARGS]   and functional tests, and the native core under sanitizers (ARGS are pytest's)
#   scripts/test.sh outside       what `make test-all` adds: lab machines, browsers, readers of other languages, users
# Each makes the environment where it lacks, and prints its ten slowest tests and its time. Unit tests run in one process
# more than there are CPUs, functional tests in three more (TEST_WORKERS: another number for both). Lint and the native
# core's own suites need none of them and run beside them from the first second: the environment waits for the network,
# and a test for processes, and they use that time. tests/outside and tests/lab have the machine to themselves.
set -eu
cd "$(dirname "$0")/.."
unset NO_COLOR COLORTERM 2>/dev/null || :
# Byte code is kept: many tests start Python anew. That of the tests is made once, before the first ring.
unset PYTHONDONTWRITEBYTECODE 2>/dev/null || :
cpus=$(getconf _NPROCESSORS_ONLN)
# A worker waits for the next test now and then: one more uses that time. A functional test waits for half of its time,
# too (for processes, for a screen to come to rest).
workers=${TEST_WORKERS:-$((cpus + 1))}
functional_workers=${TEST_WORKERS:-$((cpus + 3))}
. scripts/beside.sh
scratch=
trap 'end_all; rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM HUP
times=

# ring NAME FUNCTION…: run it and note how long it took. Within a condition `set -e` is off: functions join by &&.
ring() {
    name=$1
    shift
    began=$(date +%s)
    "$@" || exit $?
    times="$times$name: $(($(date +%s) - began)) s
"
}

# A folder in memory for what the tests write, where there is one that runs programs: a ring writes some 100,000 small
# files, which takes a disk a minute. Without one, pytest's own folder below /tmp is as good and slower.
scratch=$(mktemp -d /dev/shm/jitter-workshop-tests.XXXXXX 2>/dev/null || :)
if [ -n "$scratch" ]; then
    printf '#!/bin/sh\n' >"$scratch/probe"
    chmod +x "$scratch/probe"
    [ "$(df -Pk "$scratch" | awk 'NR == 2 { print $4 }')" -ge 2097152 ] && "$scratch/probe" 2>/dev/null || {
        rm -rf "$scratch"
        scratch=
    }
fi

# parallel WORKERS TESTS…: groups begin in the order that tests/conftest.py gives them. Two plugins that none of these
# tests uses are left out: their hooks took a sixth of the time of a short test.
parallel() {
    numprocesses=$1
    shift
    [ -z "$scratch" ] || set -- --basetemp="$scratch/pytest" "$@"
    python -m pytest --durations=10 --numprocesses="$numprocesses" --dist=loadgroup --no-loadscope-reorder \
        -p no:logging -p no:rerunfailures "$@"
}

environment() {
    sh scripts/workshop.sh exec true &&
        case ${PYTHON:-} in [0-9].[0-9]*) PATH=$PWD/.venv.$PYTHON/bin:$PATH ;; *) PATH=$PWD/.venv/bin:$PATH ;; esac &&
        python -m tests.rewritten tests tests/unit tests/functional tests/native
}

# The sanitizers' suites have less right to a CPU: they take what the others leave.
begin_native() { begin "$1" ${2:+nice -n "$2"} sh scripts/test-native.sh "$1"; }

check() {
    begin lint sh scripts/lint.sh
    parallel "$workers" tests/unit && passed=0 || passed=$?
    finish lint plain && return "$passed"
}

more() {
    parallel "$functional_workers" tests/functional tests/native "$@" && passed=0 || passed=$?
    finish sanitizers && return "$passed"
}

# Other programs and the lab machine. Its kernels are fetched the first time only; one line says what to install where it
# cannot run. Before them, the course once more: on the smallest screen, and with the other keys in each chapter.
outside() {
    parallel "$functional_workers" -m soak tests/functional/test_screen_course.py || return 1
    python -m tests.lab.fetch && python -m pytest --durations=10 tests/outside tests/lab
}

which=${1:-test}
[ $# -eq 0 ] || shift
case $which in
check)
    begin_native plain
    ring environment environment
    ring check check
    ;;
test)
    begin_native plain
    begin_native sanitizers 5
    ring environment environment
    ring check check
    ring test more "$@"
    ;;
outside)
    ring environment environment
    ring outside outside
    ;;
*)
    echo "unknown ring $which: check, test or outside" >&2
    exit 2
    ;;
esac
printf '%s' "$times"
