#!/usr/bin/env bash
# Runs the daily job on the cluster: docker exec spark-master run_etl.sh 2024-01-01
# Options of `spark-app etl` may follow the date.
set -euo pipefail

if [ $# -eq 0 ] || [[ $1 == -* ]]; then
    echo "run_etl.sh needs a date: run_etl.sh 2024-01-01" >&2
    exit 2
fi
date=$1
shift
home=${SPARK_APP_HOME:-/data}

# Old log files of any kind; `retention` removes old runs, reports, event logs and logs of applications, but none in use.
find "$home/logs" -mindepth 1 -mtime "+${SPARK_APP_RETENTION__DAYS:-14}" -delete 2>/dev/null || true

exec spark-app etl --date "$date" "$@"
