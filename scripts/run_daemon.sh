#!/usr/bin/env bash
# Runs a daemon of Spark in a container: run_daemon.sh master|worker|history [OPTION]...
#
# SPARK_MASTERS is where workers register: of more than one, whichever leads. SPARK_OVERLAY are files of further Spark properties,
# which may hold secrets. The daemons start without SPARK_CONF_DIR, which the image sets for every other program: a folder of configuration on the class path disables the class-data archive.
set -euo pipefail
unset SPARK_CONF_DIR

name=${1:-}
shift || true
case $name in
master) daemon=(org.apache.spark.deploy.master.Master --host "$HOSTNAME" --port 7077) ;;
worker) daemon=(org.apache.spark.deploy.worker.Worker "$SPARK_MASTERS" --work-dir /scratch/work) ;;
history) daemon=(org.apache.spark.deploy.history.HistoryServer) ;;
*)
    echo "run_daemon.sh needs the name of a daemon: master, worker or history" >&2
    exit 2
    ;;
esac
options=(-Dlog4j2.configurationFile=file:/app/config/spark/log4j2-daemon.properties "-Dapp.log.file=/data/logs/$HOSTNAME.jsonl")
properties=/app/config/spark/daemons.conf
if [[ ${SPARK_OVERLAY:-} ]]; then
    merged=$(mktemp --suffix .conf) # for its user only
    # shellcheck disable=SC2086 # a list of files
    cat "$properties" $SPARK_OVERLAY >"$merged"
    properties=$merged
fi
export SPARK_DAEMON_JAVA_OPTS="${SPARK_DAEMON_JAVA_OPTS:-} ${options[*]}"
exec spark-class "${daemon[@]}" --properties-file "$properties" "$@"
