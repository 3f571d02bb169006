#!/usr/bin/env bash
# Trains, judges and promotes the model of refunds on the cluster: docker exec spark-master run_ml.sh
# Words and options of `spark-app ml` may follow: run_ml.sh score --date 2024-01-01
#
# Without a history of days it makes one first.
set -euo pipefail

home=${SPARK_APP_HOME:-/data}

# Nothing else removes old log files; `retention` removes old runs and reports, and spares those in use.
find "$home/logs" -mindepth 1 -mtime "+${SPARK_APP_RETENTION__DAYS:-14}" -delete 2>/dev/null || true

exec spark-app ml "$@"
