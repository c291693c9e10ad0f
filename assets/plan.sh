#!/bin/sh
# Change settings of a host: the functions of the script that 'plan --sh' prints. report/plan_script.py takes those that
# a plan calls, below a head that defines ROOT, say and fail, and above a line for each change. A blank line ends a
# group of functions, which go together. A function leaves a setting alone if its value is not the expected one and can
# be read as one text. It reports a write that is refused. Both set "failed".
# shellcheck disable=SC2034,SC2154 # the rest of the script sets ROOT and "opened", and reads "failed"

# The meaning of a text, so that 3 and 00000003 are the same.
meaning() { # KIND TEXT
    case $1 in
        choice) case $2 in *\[*\]*) set -- "$1" "${2#*\[}" && set -- "$1" "${2%%\]*}" ;; esac ;;
        preempt) case $2 in *\(*\)*) set -- "$1" "${2#*\(}" && set -- "$1" "${2%%\)*}" ;; esac ;;
        cpu-mask) set -- "$1" "$(printf '%s' "$2" | tr -d ',' | tr 'A-F' 'a-f' | sed 's/^0x//;s/^0*//')" ;;
        idle-disable) set -- "$1" "$((${2:-0} & 1))" ;;
        number) set -- "$1" "$(printf '%s' "$2" | sed 's/^+//;s/^\(-*\)0*\([0-9]\)/\1\2/')" ;;
    esac
    printf '%s' "$2" | tr '\n\t' '  ' | sed 's/   */ /g;s/^ //;s/ $//'
}
same() { [ "$(meaning "$1" "$2")" = "$(meaning "$1" "$3")" ]; } # KIND TEXT TEXT
write() { (printf '%s\n' "$2" >"$ROOT$1") 2>/dev/null; } # PATH TEXT

file() { # KIND PATH FROM TO [PLACE]: the file is to say TO where it says FROM, '*' for anything; it is read at PLACE if
    # that is there
    place=$2
    if [ -n "${5:-}" ] && [ -f "$ROOT${5:-}" ]; then place=$5; fi
    if ! found=$(cat "$ROOT$place" 2>/dev/null); then
        fail "left alone: $2 cannot be read"
        return 0
    fi
    if same "$1" "$found" "$4"; then return 0; fi
    if [ "$3" != '*' ] && ! same "$1" "$found" "$3"; then
        fail "left alone: $2 says '$(meaning "$1" "$found")', not '$(meaning "$1" "$3")'"
        return 0
    fi
    write "$2" "$4" || true
    found=$(cat "$ROOT$place" 2>/dev/null || true)
    if ! same "$1" "$found" "$4"; then
        fail "refused: $2 says '$(meaning "$1" "$found")' after '$4' was written"
    fi
}

limit() { # PATH FROM TO: a kernel worker takes the limit up a moment after the write, so that is waited for
    if [ ! -r "$ROOT$1" ]; then
        fail "left alone: $1 cannot be read"
        return 0
    fi
    if ! comes_to_say "$1" 10 "$2" "$3"; then
        fail "left alone: $1 says '$found', not '$2'"
        return 0
    fi
    if same number "$found" "$3"; then return 0; fi
    tenths=10
    write "$1" "$3" || tenths=0
    comes_to_say "$1" "$tenths" "$3" "$3" || fail "refused: $1 says '$found' after '$3' was written"
}
comes_to_say() { # PATH TENTHS TEXT TEXT: whether the file says either within so many tenths of a second
    tenths=$2
    while :; do
        found=$(cat "$ROOT$1" 2>/dev/null || true)
        if same number "$found" "$3" || same number "$found" "$4"; then return 0; fi
        if [ "$tenths" -le 0 ]; then return 1; fi
        tenths=$((tenths - 1))
        sleep 0.1 2>/dev/null || { sleep 1 && tenths=0; } # not every sleep takes a fraction
    done
}

# Tasks and services belong to this machine: with JITTER_ROOT they are only named.
trial() { # WHAT
    [ -n "$ROOT" ] || return 1
    say "tried out: $1"
}
started() { # TID: when the task started, which tells it from a later one of the same number
    line=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
    line=${line##*) }
    # shellcheck disable=SC2086 # to split the line at its blanks is what is wanted
    set -- $line
    shift 19
    printf '%s' "$1"
}

task() { # TID STARTED FROM TO: a task's CPUs, either side one list or several that count, FROM also '*' for any list;
    # a task that ended needs nothing, and lists that the kernel gives when a set or a CPU comes or goes count as FROM
    if trial "task $1 on CPUs $4"; then return 0; fi
    if [ "$(started "$1" || true)" != "$2" ]; then return 0; fi
    found=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null || true)
    case " $4 " in *" $found "*) return 0 ;; esac
    moving=''
    [ "$3" != '*' ] || { moving=1 && set -- "$1" "$2" "$found" "$4"; }
    case " $3 $opened " in
        *" $found "*) ;;
        *)
            fail "left alone: task $1 may run on $found, not $3"
            return 0
            ;;
    esac
    if ! taskset -pc "${4%% *}" "$1" >/dev/null 2>&1; then
        fail "refused: task $1 cannot be put on CPUs $4"
        return 0
    fi
    found=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null || true)
    case " $4 " in
        *" $found "*) ;;
        *) [ -z "$found" ] || [ -n "$moving" ] || fail "refused: task $1 may run on $found after $4 was asked for" ;;
    esac
}

place() { # TID STARTED FROM TO: the version 1 cpuset that a task is in
    if trial "task $1 in $4"; then return 0; fi
    if [ "$(started "$1" || true)" != "$2" ]; then return 0; fi
    found=$(sed -n 's/^[0-9]*:[^:]*cpuset[^:]*://p' "/proc/$1/cgroup" 2>/dev/null || true)
    if [ "$found" = "$4" ]; then return 0; fi
    if [ "$found" != "$3" ]; then
        fail "left alone: task $1 is in $found, not $3"
        return 0
    fi
    sets=$(sed -n 's/^[^ ]* \([^ ]*\) cgroup [^ ]*cpuset.*/\1/p' /proc/mounts | head -n 1)
    (printf '%s\n' "$1" >"$sets${4%/}/tasks") 2>/dev/null || fail "refused: task $1 cannot be put in $4"
}

anew() { # FOLDER: a policy takes its governor schedutil anew, whose thread is then bound to the policy's CPUs again
    [ "$(cat "$ROOT$1/scaling_governor" 2>/dev/null || true)" = schedutil ] || return 0
    other=schedutil
    for other in $(cat "$ROOT$1/scaling_available_governors" 2>/dev/null || true); do
        [ "$other" = schedutil ] || break
    done
    if [ "$other" = schedutil ]; then
        fail "left alone: $1 has no other governor to take meanwhile"
        return 0
    fi
    { write "$1/scaling_governor" "$other" && write "$1/scaling_governor" schedutil; } || true
    if [ "$(cat "$ROOT$1/scaling_governor" 2>/dev/null || true)" != schedutil ]; then
        fail "refused: $1 does not take its governor anew"
    fi
}

folder() { # present|absent PATH: a folder or control group; tasks in it go to its parent before it is removed
    if [ "$1" = present ]; then
        [ -d "$ROOT$2" ] || mkdir "$ROOT$2" || fail "refused: $2 cannot be made"
        return 0
    fi
    [ -d "$ROOT$2" ] || return 0
    vacate "$2"
    rmdir "$ROOT$2" || fail "left alone: $2 cannot be removed"
}
vacate() { # PATH
    for members in cgroup.procs tasks; do
        [ -f "$ROOT$1/$members" ] || continue
        inside=$(cat "$ROOT$1/$members")
        for member in $inside; do
            write "${1%/*}/$members" "$member" || true
        done
        break
    done
}

cpuset() { # PATH CPUS NODES: a version 1 set with what it needs before it takes a task
    folder present "$1"
    write "$1/cpuset.cpus" "$2" || fail "refused: CPUs $2 for $1"
    write "$1/cpuset.mems" "$3" || fail "refused: nodes $3 for $1"
}

controller() { # PATH +cpuset|-cpuset: whether the groups below have the cpuset controller
    if grep -qw cpuset "$ROOT$1"; then found=+cpuset; else found=-cpuset; fi
    [ "$found" = "$2" ] || write "$1" "$2" || fail "refused: $2 in $1"
}

cycle() { # PATH: the CPU goes offline and comes back, which moves timers and interrupts away from it
    if write "$1" 0 && write "$1" 1; then return 0; fi
    write "$1" 1 || true
    fail "refused: $1 did not go offline and come back"
}

switches() { # PATH SOFT NMI: both lockup detectors, and the switch above them
    write "${1%/*}/soft_watchdog" "$2" || [ "$2" = 0 ] || fail "refused: soft_watchdog $2"
    write "${1%/*}/nmi_watchdog" "$3" || [ "$3" = 0 ] || fail "refused: nmi_watchdog $3"
    write "$1" "$(($2 | $3))" || fail "refused: $1"
}

unit() { # UNIT active|inactive: a service of systemd
    if trial "$1 $2"; then return 0; fi
    if systemctl --quiet is-active -- "$1"; then found=active; else found=inactive; fi
    if [ "$found" = "$2" ]; then return 0; fi
    case $2 in
        active) systemctl start -- "$1" || fail "refused: $1 does not start" ;;
        *) systemctl stop -- "$1" || fail "refused: $1 does not stop" ;;
    esac
}

dropin() { # PATH FROM TO: a settings file of our own, from one text to another; no text is no file
    found=$(cat "$ROOT$1" 2>/dev/null || true)
    # The shell takes a last newline away from what is read, so it is taken away from both texts.
    if [ "$found" = "$(printf '%s' "$3")" ]; then return 0; fi
    if [ "$found" != "$(printf '%s' "$2")" ]; then
        fail "left alone: $1 was changed by hand"
    elif [ -z "$3" ]; then
        rm -f "$ROOT$1"
    else
        (umask 022 && printf '%s' "$3" >"$ROOT$1") || fail "refused: $1 cannot be written"
    fi
}

entries() { # NAMES PARAMETERS: kernel parameters in all boot entries
    if trial "grubby $2"; then return 0; fi
    if [ -n "$2" ]; then
        grubby --update-kernel=ALL --remove-args="$1" --args="$2" || fail "refused: grubby did not add $2"
    else
        grubby --update-kernel=ALL --remove-args="$1" || fail "refused: grubby did not remove $1"
    fi
}

then_do() { # COMMAND
    if trial "$1"; then return 0; fi
    "$1" || fail "refused: $1 failed"
}
