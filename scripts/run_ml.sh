#!/usr/bin/env bash
# Trains, judges and promotes the model of refunds on the cluster: docker exec spark-master run_ml.sh
# Words and options of `spark-app ml` may follow: run_ml.sh score --date 2024-01-01
#
# Where the demo shop has no history of days, it makes one first; days of your own must be published before.
set -euo pipefail

home=${SPARK_APP_HOME:-/data}

# Old log files of any kind; `retention` removes old runs, reports, event logs and logs of applications, but none in use.
find "$home/logs" -mindepth 1 -mtime "+${SPARK_APP_RETENTION__DAYS:-14}" -delete 2>/dev/null || true

exec spark-app ml "$@"
