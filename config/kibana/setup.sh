#!/bin/sh
# Imports the data view and the saved search for Spark's logs. Safe to repeat.
set -eu
answer=$(curl -fsS -X POST -H 'kbn-xsrf: true' --form file=@/setup/spark-logs.ndjson \
    "$KIBANA_URL/api/saved_objects/_import?overwrite=true")
echo "$answer"
case $answer in *'"success":true'*) ;; *) exit 1 ;; esac
