# Spark's scripts source this file in SPARK_CONF_DIR before they start a JVM; $@ are the class and its arguments, or those of
# `pyspark`.
if [[ ${1:-} == org.apache.spark.deploy.SparkSubmit || ${1:-} != org.* ]]; then
    case " $* " in
    # A folder on the class path would disable the class-data archive, and spark-app's sessions need no defaults from here.
    *-XX:SharedArchiveFile=*) SPARK_CONF_DIR=$SPARK_HOME/conf ;;
    # Each launch of any other application gets a trace of its own: driver and executors write its id into their log lines,
    # and the spans of the application have it (src/spark_app/eventlog/span_ids.py).
    *)
        SPARK_TRACE_ID=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
        SPARK_SUBMIT_OPTS="${SPARK_SUBMIT_OPTS:-} -Dspark.executorEnv.SPARK_TRACE_ID=$SPARK_TRACE_ID"
        SPARK_SUBMIT_OPTS+=" -Dlog4j2.configurationFile=file:/app/config/spark/log4j2-driver.properties"
        SPARK_SUBMIT_OPTS+=" -Dapp.log.file=/data/logs/driver-${HOSTNAME:-unknown}-$SPARK_TRACE_ID.jsonl"
        ;;
    esac
fi
