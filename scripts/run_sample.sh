#!/usr/bin/env bash
# Runs what the first page of the stack shows at the first start: a day, two minutes of two streams, a training of the demo shop.
# Once, and only into an empty warehouse: docker exec spark-master run_sample.sh. With --is-due it runs nothing, and its exit
# code says whether it would.
set -euo pipefail

home=${SPARK_APP_HOME:-/data}
mark=$home/runs/.sample

is_due() {
    [ ! -e "$mark" ] || return 1
    [[ ${SPARK_APP_WAREHOUSE:-} != *:/* ]] || return 1 # whether a store is empty is not looked at
    [ -z "$(ls -A "$home/warehouse" 2>/dev/null)" ] || return 1
    spark-app data --help >/dev/null 2>&1 # a project of one's own has no such command
}

is_due || { [[ ${1:-} == --is-due ]] || echo "no sample: there are tables, or it has run, or this is not the demo shop"; exit 1; }
[[ ${1:-} != --is-due ]] || exit 0
mkdir "$mark" # fails if another process was faster
exec >>"$home/logs/sample.log" 2>&1
run_etl.sh 2024-01-01 || echo "the day of the sample failed"
run_streaming.sh events carts --for 2m || echo "the streams of the sample failed" # all ten need more than two cores
run_ml.sh || echo "the training of the sample failed"
