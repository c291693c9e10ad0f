#!/bin/sh
# Makes the environment (once), builds the native core, and starts what is asked for.
#
#   sh scripts/workshop.sh start [ARGS]   the workshop (ARGS are jitter-workshop's own)
#   sh scripts/workshop.sh check          lint and unit tests: before each commit, at most two minutes
#   sh scripts/workshop.sh test [ARGS]    and functional tests, sanitizers (ARGS are pytest's)
#   sh scripts/workshop.sh test-outside   lab machines, browsers, other users: what make test-all adds
#   sh scripts/workshop.sh dist [ARGS]    wheels, a source distribution and packages in dist/ (ARGS: --out FOLDER)
#   sh scripts/workshop.sh package [KIND] a Debian package (deb), an RPM (rpm), or both, in dist/ (--out FOLDER)
#   sh scripts/workshop.sh exec CMD …     any command in the developers' environment
#
# It needs Python 3.11 to 3.13 (PYTHON: which one) with headers and venv, or uv, and a C compiler. It writes only below
# this folder, never touches the system's pip, and needs the network the first time only. PYTHON=3.13, a version, has an
# environment of its own (.venv.3.13) beside the usual one; PYTHON=/usr/bin/python3, a program, makes the usual one.
set -eu
unset PYTHONHOME PYTHONPATH PIP_USER PIP_TARGET PIP_PREFIX PIP_REQUIRE_VIRTUALENV VIRTUAL_ENV 2>/dev/null || :
cd "$(dirname "$0")/.."
here=$(pwd -P)
venv=$here/.venv
case ${PYTHON:-} in [0-9].[0-9]*) version_wanted=$PYTHON venv=$here/.venv.$PYTHON ;; *) version_wanted= ;; esac
uv=$(command -v uv 2>/dev/null || :)

say() { printf '%s\n' "$*" >&2; }
fail() { say "jitter-workshop: $*"; exit 2; }

# Tell the abilities of a candidate interpreter: "3.12 /real/path venv headers", a lacking part as "-".
probe='
import os, sys, sysconfig
try:
    import ensurepip, venv
    has_venv = "venv"
except ImportError:
    has_venv = "-"
header = os.path.join(sysconfig.get_path("include"), "Python.h")
print("%d.%d" % sys.version_info[:2], has_venv, "headers" if os.path.exists(header) else "-", sys.executable)
'

find_python() {
    python="" lacking=""
    # The distribution's own come first: they are built with optimisations, which those of version managers often are
    # not (a tenth more time for all that runs), and their files belong to root.
    case :$PATH: in
    *:/usr/bin:*) system="/usr/bin/python3.13 /usr/bin/python3.12 /usr/bin/python3.11" ;;
    *) system= ;;
    esac
    candidates="${PYTHON:-} $system python3.13 python3.12 python3.11 python3 python"
    # A version manager's Pythons may be off the PATH.
    [ -z "$version_wanted" ] || candidates="/usr/bin/python$PYTHON python$PYTHON $(echo "${HOME:-}/.pyenv/versions/$PYTHON".*/bin/"python$PYTHON")"
    for name in $candidates; do
        # A version manager may put a name on PATH that it then refuses to run: only an answer counts.
        answer=$("$name" -c "$probe" 2>/dev/null) || continue
        # shellcheck disable=SC2086 # the answer is split on purpose; the path comes last
        set -- $answer
        case $1 in 3.11 | 3.12 | 3.13) ;; *) continue ;; esac
        [ "${version_wanted:-$1}" = "$1" ] || continue
        version=$1 has_venv=$2 has_headers=$3
        shift 3
        if [ "$has_headers" = - ]; then
            : "${lacking:=Python $version has no headers (Debian/Ubuntu: apt install python3-dev, Fedora: dnf install python3-devel)}"
            continue
        fi
        if [ "$has_venv" = - ] && [ -z "$uv" ]; then
            : "${lacking:=Python $version has no venv (Debian/Ubuntu: apt install python3-venv)}"
            continue
        fi
        python=$*
        return 0
    done
    [ -n "$uv" ] && return 0
    fail "${lacking:-no Python 3.11 to 3.13 and no uv found (Debian/Ubuntu: apt install python3 python3-dev python3-venv, Fedora: dnf install python3 python3-devel)}"
}

need_compiler() {
    for name in ${CC:-} cc gcc clang; do
        command -v "$name" >/dev/null 2>&1 || continue
        # A compiler without the C library's headers is the commonest half-installed kind.
        if printf '#include <stdio.h>\nint main(void){return 0;}\n' | "$name" -x c -fsyntax-only - 2>/dev/null; then
            CC=$name
            export CC
            return 0
        fi
        fail "the C compiler $name finds no C library headers (Debian/Ubuntu: apt install libc6-dev, Fedora: dnf install glibc-devel)"
    done
    fail "no C compiler found (Debian/Ubuntu: apt install gcc libc6-dev, Fedora: dnf install gcc)"
}

# The sources of the environment; another interpreter path, pyproject or native source makes it stale.
fingerprint() { cat pyproject.toml setup.py scripts/workshop.sh native/*.[ch] native/*.py 2>/dev/null | cksum | tr ' ' -; }

install() { # install EXTRAS: the project, editable; its build tools stay, so that a rebuild needs no network
    if [ -x "$venv/bin/pip" ]; then
        set -- "$1" "$venv/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check --no-input
    else
        set -- "$1" "$uv" pip install --quiet --python "$venv/bin/python"
    fi
    extras=$1
    shift
    log=$venv/install.log
    "$@" "setuptools>=77" "cffi>=1.17" wheel >"$log" 2>&1 &&
        "$@" --no-build-isolation --editable "$here$extras" >>"$log" 2>&1 && return 0
    tail -n 15 "$log" >&2
    fail "the installation did not finish; the last lines are above, all of it is in .venv/install.log (is the network there?)"
}

usable() { [ -x "$venv/bin/python" ] && "$venv/bin/python" -c '' 2>/dev/null; }

marked() { [ -f "$venv/.ready-$1" ] && [ "$(cat "$venv/.ready-$1")" = "$mark" ]; }

make_environment() { # make_environment user | dev
    mark="$(fingerprint) $here"
    if usable; then
        # The developers' environment has all that the user's has.
        if marked dev || marked "$1"; then return 0; fi
    fi
    need_compiler
    [ -w "$here" ] || fail "$here cannot be written; copy the project to a folder of your own"
    # Without a mark of ours it is half made; made for another folder or an interpreter that is gone, it cannot run.
    if [ -e "$venv" ] && { ! usable || ! grep -qsF " $here" "$venv/.ready-user" "$venv/.ready-dev"; }; then
        say "Removing an environment that was half made or moved ..."
        rm -rf "$venv"
    fi
    if [ ! -e "$venv" ]; then
        find_python
        say "Making the environment in .venv with ${python:-$uv} (once, about a minute) ..."
        if [ -n "$python" ] && "$python" -c 'import ensurepip' 2>/dev/null; then
            "$python" -m venv "$venv" || fail "python -m venv failed (Debian/Ubuntu: apt install python3-venv)"
        else
            "$uv" venv --quiet --python "${python:-${version_wanted:-3.13}}" "$venv" || fail "uv could not make an environment"
        fi
    else
        say "Bringing the environment up to date ..."
    fi
    if [ "$1" = dev ]; then install "[dev]"; else install ""; fi
    # Byte code now, by all CPUs, also where PYTHONDONTWRITEBYTECODE keeps later starts from writing it: they would take
    # twice as long. Some packages carry files of other versions of Python, which cannot be compiled. Two fifths of the
    # rest belong to installers, to what is compiled to C, and to languages that no screen shows; they can wait.
    "$venv/bin/python" -m compileall -q -j 0 -x '/(pip|setuptools|mypy|mypyc|pygments/lexers)/' \
        "$here/jitter_workshop" "$venv/lib" >/dev/null 2>&1 || :
    printf '%s\n' "$mark" >"$venv/.ready-$1"
}

command=${1:-start}
[ $# -eq 0 ] || shift
case $command in
start)
    make_environment user
    exec "$venv/bin/jitter-workshop" "$@"
    ;;
check | test | test-outside) exec sh scripts/test.sh "${command#test-}" "$@" ;;
dist)
    make_environment user
    "$venv/bin/python" scripts/dist.py "$@"
    exec "$venv/bin/python" scripts/packages.py "$@"
    ;;
package)
    make_environment user
    exec "$venv/bin/python" scripts/packages.py "$@"
    ;;
exec)
    make_environment dev
    [ $# -gt 0 ] || exit 0
    PATH=$venv/bin:$PATH exec "$@"
    ;;
*) fail "unknown command $command: start, check, test, test-outside, dist, package or exec" ;;
esac
