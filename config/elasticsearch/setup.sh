#!/bin/sh
# Tells Elasticsearch how to keep logs, before the first one comes. Safe to repeat.
set -eu
curl -fsS -X PUT -H 'Content-Type: application/json' --data-binary @/setup/logs-spark.json \
    "$ELASTICSEARCH_URL/_index_template/logs-spark"
echo
