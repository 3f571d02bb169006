#!/bin/sh
# Creates the index template and the retention of logs before the first log line arrives. Safe to repeat.
set -eu
curl -fsS -X PUT -H 'Content-Type: application/json' --data-binary @/setup/logs-spark.json \
    "$ELASTICSEARCH_URL/_index_template/logs-spark"
echo
