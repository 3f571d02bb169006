#!/bin/sh
# Asks each NAME=URL every 15 seconds, and serves for Prometheus at :9115/metrics.txt which of them answer.
set -eu
folder=$(busybox mktemp -d)
busybox httpd -p 9115 -h "$folder"
while true; do
    {
        echo "# TYPE probe_success gauge"
        for target in "$@"; do
            if wget -q -T 5 -O /dev/null "${target#*=}"; then is_up=1; else is_up=0; fi
            echo "probe_success{target=\"${target%%=*}\"} $is_up"
        done
        echo "# TYPE probe_timestamp_seconds gauge"
        echo "probe_timestamp_seconds $(busybox date +%s)"
    } >"$folder/next"
    busybox mv "$folder/next" "$folder/metrics.txt"
    sleep 15
done
