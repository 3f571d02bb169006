#!/usr/bin/env bash
# Will run the streaming pipelines on the cluster.
echo "run_streaming.sh: the streaming pipelines are not there yet" >&2
exit 2
