#!/usr/bin/env bash
# The main job of one day on the cluster: docker exec spark-master run_etl.sh 2024-01-01
# More options of `spark-app etl` may follow the date.
set -euo pipefail

if [ $# -eq 0 ] || [[ $1 == -* ]]; then
    echo "run_etl.sh needs a date: run_etl.sh 2024-01-01" >&2
    exit 2
fi
date=$1
shift

# What nothing else keeps in bounds: records of runs, logs of drivers and executors, and reports.
find /data/runs /data/logs -mindepth 1 -mtime "+${RETAIN_DAYS:-14}" -delete 2>/dev/null || true
find /data/reports -maxdepth 1 -name '*.html' -mtime "+${RETAIN_DAYS:-14}" -delete 2>/dev/null || true

exec spark-app etl --date "$date" "$@"
