#!/usr/bin/env bash
# The entry point of the image. Spark on Kubernetes starts its pods with `driver ...` or `executor`; all else is a command.
set -euo pipefail

# SPARK_CONF_DIR becomes the image's folder of configuration, with the Spark properties of further files. One may hold secrets.
overlay() {
    mkdir -p "$SPARK_CONF_DIR"
    cp "${SPARK_HOME%/*}"/spark-conf/* "$SPARK_CONF_DIR"
    chmod 600 "$SPARK_CONF_DIR/spark-defaults.conf"
    cat "$@" >>"$SPARK_CONF_DIR/spark-defaults.conf"
}

case ${1:-} in
driver | executor) ;;
*)
    # shellcheck disable=SC2086 # a list of files
    [[ ! ${SPARK_OVERLAY:-} ]] || overlay $SPARK_OVERLAY
    exec "$@"
    ;;
esac

# Where the root is read-only, a volume that Spark mounts into each of its pods takes what the root would have taken.
scratch=${SPARK_LOCAL_DIRS%%,*}
# spark-app writes nothing to its folder, where it finds its project.
[[ -w . || " $* " == *" local:///opt/venv/bin/spark-app.py "* ]] || cd "$scratch"
[[ -w ${TMPDIR:=/tmp} ]] || TMPDIR=$scratch
[[ -w ${HOME:=/} ]] || HOME=$scratch
export HOME TMPDIR
# Where Hadoop keeps what it is about to send to S3, by the name that it has for it (fs.s3a.buffer.dir).
export LOCAL_DIRS=$scratch
# Nothing reads files there.
unset SPARK_PYTHON_LOGS

# Spark mounts what the folder of configuration of spark-submit had. A folder on the class path disables the class-data
# archive, so none is there where that is nothing but what Spark itself has added: `spark.properties`, which it gets by an option,
# and in executors `spark.kubernetes.namespace`.
configuration() { find "${SPARK_CONF_DIR:-/nowhere}" -mindepth 1 -maxdepth 1 ! -name '..*' ! -name 'spark.*' 2>/dev/null; }
[[ $(configuration) ]] || unset SPARK_CONF_DIR

# Options that come later override these: the user's.
options=("-Djava.io.tmpdir=$TMPDIR")
options+=(-XX:+UnlockDiagnosticVMOptions -XX:ArchiveRelocationMode=0 -XX:SharedArchiveFile=/opt/cache/spark-app/class-data.jsa)
if [[ ! -e ${SPARK_CONF_DIR:-}/log4j2.properties ]]; then
    options+=(-Dlog4j2.configurationFile=file:/app/config/spark/log4j2-pod.properties)
fi

# The program that the JVM has started, once it is there: a variable tells it how to reach the JVM, and no other child has it.
python_program() {
    local child
    for child in $(pgrep --parent "$jvm"); do
        ! grep -qsz '^PYSPARK_GATEWAY_PORT=' "/proc/$child/environ" || echo "$child"
    done
}

# Runs spark-submit of a Python program. SIGTERM goes to the program, which may have something to finish, and not to the JVM that
# has started it, at whose end it would be gone. The JVM ends after the program, with its exit code.
submit_python() {
    local code signalled=yes
    spark-submit "$@" &
    jvm=$!
    trap 'signalled=yes; kill -TERM "$(python_program)" 2>/dev/null || kill -TERM "$jvm"' TERM
    while [[ $signalled ]]; do # the signal ends the wait, with an exit code of its own
        signalled='' code=0
        wait "$jvm" || code=$?
    done
    return "$code"
}

case $1 in
driver)
    shift
    # Driver and executors write the id of a trace into their log lines, and the spans of the application have it.
    export SPARK_TRACE_ID=${SPARK_TRACE_ID:-$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')}
    export SPARK_SUBMIT_OPTS="${options[*]} ${SPARK_SUBMIT_OPTS:-}"
    # What the program logs goes to the log of the pod, with the trace: standard output of this process, which becomes the JVM.
    export SPARK_PYTHON_LOGS=/proc/$$/fd/1
    # The event log has properties of a driver, and no variables.
    node=SPARK_EXECUTOR_ATTRIBUTE_KUBERNETES_NODE_NAME
    [[ ! ${!node:-} ]] || set -- --conf "spark.kubernetes.driverEnv.$node=${!node}" "$@"
    set -- --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" \
        --conf "spark.executorEnv.SPARK_DRIVER_POD_IP=$SPARK_DRIVER_BIND_ADDRESS" \
        --conf "spark.executorEnv.SPARK_TRACE_ID=$SPARK_TRACE_ID" \
        --deploy-mode client "$@"
    case " $* " in
    *" org.apache.spark.deploy.PythonRunner "*) submit_python "$@" ;;
    *) exec spark-submit "$@" ;;
    esac
    ;;
executor)
    for ((number = 0; ; number++)); do
        name=SPARK_JAVA_OPT_$number
        [[ -v $name ]] || break
        options+=("${!name}")
    done
    exec java "${options[@]}" "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
        -cp "${SPARK_CONF_DIR:+$SPARK_CONF_DIR:}${SPARK_CLASSPATH:+$SPARK_CLASSPATH:}$SPARK_HOME/jars/*:$PWD" \
        org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
        --driver-url "$SPARK_DRIVER_URL" \
        --executor-id "$SPARK_EXECUTOR_ID" \
        --cores "$SPARK_EXECUTOR_CORES" \
        --app-id "$SPARK_APPLICATION_ID" \
        --hostname "$SPARK_EXECUTOR_POD_IP" \
        --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" \
        --podName "$SPARK_EXECUTOR_POD_NAME"
    ;;
esac
