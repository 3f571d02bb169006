#!/usr/bin/env bash
# Will run the ml pipelines on the cluster.
echo "run_ml.sh: the ml pipelines are not there yet" >&2
exit 2
