#!/bin/sh
# Asks each NAME=URL every 15 seconds, and serves for Prometheus at :9115/metrics.txt which of them answer; NAME.txt is there while
# NAME answers. ASK and SERVE are the programs that ask and serve, where BusyBox does not know TLS: docker-compose.tls.yml.
set -eu
command -v busybox >/dev/null || busybox() { "$@"; }
folder=$(busybox mktemp -d)
if [ "${SERVE:-}" ]; then
    (cd "$folder" && exec $SERVE) &
else
    busybox httpd -p 9115 -h "$folder"
fi
while true; do
    {
        echo "# TYPE probe_success gauge"
        for target in "$@"; do
            name=${target%%=*}
            if ${ASK:-wget -q -T 5 -O /dev/null} "${target#*=}" 2>/dev/null; then
                is_up=1
                : >"$folder/$name.txt"
            else
                is_up=0
                busybox rm -f "$folder/$name.txt"
            fi
            echo "probe_success{target=\"$name\"} $is_up"
        done
        echo "# TYPE probe_timestamp_seconds gauge"
        echo "probe_timestamp_seconds $(busybox date +%s)"
    } >"$folder/next"
    busybox mv "$folder/next" "$folder/metrics.txt"
    sleep 15
done
