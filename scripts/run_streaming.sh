#!/usr/bin/env bash
# Runs the streaming queries on the cluster until Ctrl-C: docker exec -it spark-master run_streaming.sh
# Names and options of `spark-app streaming` may follow.
#
# Meanwhile the Kafka of the stack gets records of the demo shop, DEMO_RATE a second (0: none). Your own does not:
# docker exec -it -e SPARK_APP_KAFKA__SERVERS=host:port spark-master run_streaming.sh
set -euo pipefail

home=${SPARK_APP_HOME:-/data}
rate=${DEMO_RATE:-20}

# Old log files of any kind; `retention` removes old runs, reports, event logs and logs of applications, but none in use.
find "$home/logs" -mindepth 1 -mtime "+${SPARK_APP_RETENTION__DAYS:-14}" -delete 2>/dev/null || true

# Whether queries with these arguments wait for records that only the demo shop sends.
needs_demo() {
    [[ ${SPARK_APP_KAFKA__SERVERS:-} == kafka:19092 && $rate != 0 ]] || return 1
    case ${1:-} in status | reset | seek | skip | replay) return 1 ;; esac # which a query may be called, too, behind `run`
    local argument
    for argument; do
        case $argument in --available-now | --help) return 1 ;; esac
    done
    spark-app data --help >/dev/null 2>&1 # a project of one's own has no such command
}

# Sends records of the demo shop as long as a process lives. What sends them ends when Kafka is away for long, and is started
# again: after a second at first, after at most a minute.
send_records() {
    local end sender began code pause=1
    tail --pid="$1" --follow /dev/null &
    end=$!
    while :; do
        began=$SECONDS code=0
        spark-app data stream --rate "$rate" --for 365d &
        sender=$!
        wait -n "$sender" "$end" || code=$?
        kill -0 "$end" 2>/dev/null || break
        ((SECONDS - began < 60)) || pause=1
        printf 'the demo shop ended with code %d; it starts again in %d s\n' "$code" "$pause"
        ! timeout "$pause" tail --pid="$1" --follow /dev/null || break
        ((pause = pause < 30 ? 2 * pause : 60))
    done
    kill "$sender" 2>/dev/null || true
}

if needs_demo "$@"; then
    send_records $$ </dev/null >>"$home/logs/demo-shop.log" 2>&1 &
fi
exec spark-app streaming "$@"
