# Runs commands beside what follows, and shows what they print where it is seen. Other scripts read it in (`.`).
#   begin NAME COMMAND…   run it beside the others, and keep what it prints
#   finish NAME…          wait for these, and show what they printed; false if one failed, whose output comes last
#   end_all               end what still runs: for a trap on EXIT
told=$(mktemp -d)

begin() {
    job=$1
    shift
    "$@" >"$told/$job" 2>&1 &
    echo $! >"$told/$job.pid"
}

finish() {
    failed=
    for job; do
        pid=$(cat "$told/$job.pid")
        rm "$told/$job.pid"
        if wait "$pid"; then cat "$told/$job"; else failed="$failed $job"; fi
    done
    for job in $failed; do
        cat "$told/$job"
        echo "FAILED: $job" >&2
    done
    [ -z "$failed" ]
}

end_all() {
    # shellcheck disable=SC2046 # one argument for each
    kill $(cat "$told"/*.pid 2>/dev/null) 2>/dev/null || :
    rm -rf "$told"
}
