#!/bin/sh
# Imports the data view and the saved search for Spark's logs. Safe to repeat.
set -eu
# Where Elasticsearch has its security on (docker-compose.tls.yml), whoever asks for a page gets a session without a password.
[ ! "${COOKIES:-}" ] || curl -fsSL -o /dev/null --cookie-jar "$COOKIES" "$KIBANA_URL/"
answer=$(curl -fsS -X POST -H 'kbn-xsrf: true' ${COOKIES:+--cookie "$COOKIES"} --form file=@/setup/spark-logs.ndjson \
    "$KIBANA_URL/api/saved_objects/_import?overwrite=true")
echo "$answer"
case $answer in *'"success":true'*) ;; *) exit 1 ;; esac
