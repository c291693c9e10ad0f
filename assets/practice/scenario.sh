# Sourced in a practice machine: what the programs of a scenario may use, and the commands of the learner's shell.

start() { # start NAME PROGRAM: run a program of the shell in the background, as a task of that name
    # The file of a running program cannot be written to, but it can be replaced.
    printf '#!/bin/sh\n%s\n' "$2" >"/opt/$1.new"
    chmod 755 "/opt/$1.new"
    mv "/opt/$1.new" "/opt/$1"
    setsid "/opt/$1" </dev/null >/dev/null 2>&1 &
}

command_of() { # command_of NAME PROGRAM: a command for the learner
    printf '#!/bin/sh\n%s\n' "$2" >"$INSIDE/bin/$1"
    chmod 755 "$INSIDE/bin/$1"
}

commands() { # make the commands of the learner's shell
    mkdir -p "$INSIDE/bin"
    for verb in task check hint; do
        command_of "$verb" "KEPT='$KEPT' exec '$PYTHON' -m jitter_workshop practice $verb \"\$@\""
    done
    # Programs that this host has only through /etc/alternatives, or does not have.
    for program in awk less pgrep pidof ps top vi which; do
        command -v "$program" >/dev/null || ln -s /lab/busybox "$INSIDE/bin/$program"
    done
    command_of boot-with "printf '%s\\n' \"\$*\" >'$KEPT/boot-with'; sync; exec /lab/busybox poweroff -f"
    cat >"$INSIDE/rc" <<RC
PATH='$INSIDE/bin':\$PATH
PS1='practice:\\w# '
task
RC
}

pids_of() { # pids_of NAME…: the processes with these names
    for wanted in "$@"; do
        for place in /proc/[0-9]*; do
            read -r name 2>/dev/null <"$place/comm" || continue
            [ "$name" != "$wanted" ] || echo "${place#/proc/}"
        done
    done
}

allowed() { # allowed PID: the list of CPUs that a task may use
    awk '/^Cpus_allowed_list/ { print $2 }' "/proc/$1/status" 2>/dev/null
}

in_list() { # in_list CPU LIST: succeed if the list has the CPU
    for part in $(echo "$2" | tr , ' '); do
        [ "$1" -lt "${part%-*}" ] || [ "$1" -gt "${part#*-}" ] || return 0
    done
    return 1
}

others_than() { # others_than CPU: the list of the other online CPUs
    for place in /sys/devices/system/cpu/cpu[0-9]*; do
        cpu=${place##*/cpu}
        [ "$cpu" = "$1" ] || [ "$(cat "$place/online" 2>/dev/null || echo 1)" = 0 ] || echo "$cpu"
    done | paste -sd,
}

mask_without() { # mask_without CPU FILE: take the CPU out of the mask in a file
    printf '%x\n' $((0x$(tr -d , <"$2") & ~(1 << $1))) >"$2"
}
