"""Failures that users of Spark meet, recognized by their error, and what to do about each.

The names in brackets are Spark's own error conditions (`error-conditions.json`); other texts are what Spark 3.5 to 4.2,
Delta Lake, Hadoop, JDBC and Kubernetes say. `tests/integration/test_failures.py` raises those that one machine can
raise.
"""

import re
from dataclasses import dataclass, replace
from typing import Final


@dataclass(frozen=True, slots=True)
class Failure:
    """A kind of failure.

    Attributes:
        name: Its name.
        error: What its error says: a regular expression.
        advice: What to do; names in braces are groups of the expression.
    """

    name: str
    error: str
    advice: str


FAILURES: Final = (
    # What ended a process comes before what broke because it was gone.
    Failure(
        "full_disk",
        r"No space left on device",
        "A disk is full. Shuffle files and spilled rows go to spark.local.dir (SPARK_LOCAL_DIRS on a cluster): let it "
        "name a larger disk, or shuffle less.",
    ),
    Failure(
        "result_too_large",
        r"is bigger than (?:local maxResultSize|spark\.driver\.maxResultSize)",
        "The driver collects more than spark.driver.maxResultSize lets it. Write the rows instead of collecting them "
        "(`df.write`), or aggregate or `limit` first; raise the limit only if the heap of the driver holds them.",
    ),
    Failure(
        "broadcast_too_large",
        r"Cannot broadcast the table|Not enough memory to build and broadcast",
        "A side of a join is too large to be broadcast. Take `broadcast(...)` away, or lower "
        "spark.sql.autoBroadcastJoinThreshold, so that Spark sorts and merges both sides.",
    ),
    Failure(
        "broadcast_timeout",
        r"Could not execute broadcast in \d+ sec|BROADCAST_EXCHANGE_TIMEOUT",
        "The side of a join that is broadcast was not there in time (spark.sql.broadcastTimeout). Make what "
        "computes it faster, write it to a table first, or let Spark sort and merge both sides.",
    ),
    Failure(
        "container_memory",
        r"Container killed by YARN for exceeding|OOMKilled|[Ee]xit(?:ed with)? (?:code|status):? 137"
        r"|killed by external signal",
        "The memory of a container was not enough. What is not the heap of the JVM needs it: Python workers, off-heap "
        "buffers, Arrow. Raise spark.executor.memoryOverhead (spark.driver.memoryOverhead of a driver), or bound "
        "Python with spark.executor.pyspark.memory.",
    ),
    Failure(
        "executor_memory",
        r"(?s)(?:Lost task|ExecutorLostFailure|stage failure).*OutOfMemoryError",
        "A task needs more heap than its executor has. More, smaller partitions need less each (`repartition`, "
        "spark.sql.shuffle.partitions); a dear partition is often one key with most rows, or `collect_list`. Else "
        "raise spark.executor.memory, or lower spark.executor.cores.",
    ),
    Failure(
        "driver_memory",
        r"OutOfMemoryError",
        "The driver needs more heap than it has: what it collects, broadcasts or plans has to fit. Collect less "
        "(`toPandas`, `collect`), or raise spark.driver.memory where the driver is started.",
    ),
    Failure(
        "executor_lost",
        r"ExecutorLostFailure|Executor heartbeat timed out",
        "Executors were lost while they ran tasks. The log of the cluster manager says why: memory of the container, a "
        "host that went away, or an executor that answered too late because it collected garbage.",
    ),
    Failure(
        "python_worker_crash",
        r"Python worker exited unexpectedly|Python worker failed to connect",
        "A Python worker ended without an exception: native code of a library crashed, it called `exit`, or the kernel "
        "killed it for lack of memory. With spark.python.worker.faulthandler.enabled=true the error has its stack.",
    ),
    Failure(
        "lost_shuffle",
        r"FetchFailed|MetadataFetchFailed|FETCH_FAILED",
        "Shuffle files of another executor could not be read, mostly because it was lost. See why executors were lost; "
        "an external shuffle service, or decommissioning, keeps the files.",
    ),
    # Python functions.
    Failure(
        "python_version",
        r"PYTHON_VERSION_MISMATCH|Python in worker has different version",
        "The executors run another version of Python than the driver. Let PYSPARK_PYTHON name the same one on all "
        "hosts, and PYSPARK_DRIVER_PYTHON on the driver.",
    ),
    Failure(
        "module_missing_on_executors",
        r"(?s)pyspark/worker\.py.*No module named '(?P<module>[\w.]+)'",
        "The Python of the executors has no module {module}. Install it there, or send it along: `--py-files`, or an "
        "environment in `--archives`.",
    ),
    Failure(
        "context_in_function",
        r"CONTEXT_ONLY_VALID_ON_DRIVER",
        "A function that runs on executors uses the session or a DataFrame. Join the DataFrames, or collect what the "
        "function needs first and pass the plain value.",
    ),
    Failure(
        "not_serializable",
        r"Could not serialize object|Task not serializable|PicklingError|NotSerializableException",
        "A function takes an object along that cannot be sent to executors, such as a connection, a lock or a client. "
        "Create it inside of the function, once for a partition (`mapPartitions`, `mapInPandas`).",
    ),
    # Values.
    Failure(
        "cast",
        r"\[CAST_INVALID_INPUT\]|\[CAST_OVERFLOW|\[CONVERSION_INVALID_INPUT|\[CANNOT_PARSE_TIMESTAMP",
        "A value is not of the type that it is cast to: Spark 4 refuses it (spark.sql.ansi.enabled), where Spark 3 "
        "gave null. Use `try_cast` (`try_to_timestamp`, `try_to_date`), and filter on the null where it is to be seen.",
    ),
    Failure(
        "division_by_zero",
        r"\[DIVIDE_BY_ZERO\]",
        "A divisor is 0: Spark 4 refuses it (spark.sql.ansi.enabled), where Spark 3 gave null. Use `try_divide`, or "
        "`nullif(divisor, 0)`.",
    ),
    Failure(
        "overflow",
        r"\[ARITHMETIC_OVERFLOW|\[NUMERIC_VALUE_OUT_OF_RANGE|\[BINARY_ARITHMETIC_OVERFLOW",
        "A number does not fit its type. Cast to a wider one before the calculation (`bigint`, `decimal(38, ...)`), or "
        "use `try_add`, `try_multiply` or `try_cast`, which give null.",
    ),
    Failure(
        "index",
        r"\[INVALID_ARRAY_INDEX|\[INVALID_INDEX_OF_ZERO",
        "An array has no such element: Spark 4 refuses it. Use `get(array, index)` or `try_element_at`, which give "
        "null.",
    ),
    Failure(
        "subquery_rows",
        r"\[SCALAR_SUBQUERY_TOO_MANY_ROWS\]",
        "A subquery that stands for one value has several rows. Aggregate it (`max`, `first`), or join it.",
    ),
    Failure(
        "regular_expression",
        r"\[INVALID_PARAMETER_VALUE\.(?:PATTERN|REGEX_GROUP_INDEX)\]|\[INVALID_REGEXP",
        "A regular expression is not one of Java's: brackets and backslashes that stand for themselves need a "
        "backslash (`r'\\('` in Python).",
    ),
    # Names and types of columns.
    Failure(
        "column_not_found",
        r"\[UNRESOLVED_COLUMN",
        "A column of this name is not there. The error lists the nearest; `df.printSchema()` before the line shows "
        "all.",
    ),
    Failure(
        "ambiguous_column",
        r"\[AMBIGUOUS_(?:REFERENCE|COLUMN_REFERENCE|COLUMN_OR_FIELD)",
        'Both sides of a join have a column of this name. Join on the name (`join(other, "id")`), rename one, or use '
        '`alias("a")` and `col("a.id")`.',
    ),
    Failure(
        "missing_aggregation",
        r"\[MISSING_AGGREGATION\]|\[MISSING_GROUP_BY\]",
        "A column is neither grouped by nor aggregated. Add it to `groupBy`, or aggregate it (`max`, `any_value`).",
    ),
    Failure(
        "columns_do_not_match",
        r"\[NUM_COLUMNS_MISMATCH\]|\[INCOMPATIBLE_COLUMN_TYPE\]|\[INSERT_COLUMN_ARITY_MISMATCH|"
        r"\[INCOMPATIBLE_DATA_FOR_TABLE",
        "Both sides have other columns. `unionByName(other, allowMissingColumns=True)` takes them by name; before an "
        "insert, `select` the columns of the table in their order.",
    ),
    # Tables and files.
    Failure(
        "table_not_found",
        r"\[TABLE_OR_VIEW_NOT_FOUND\]|\[SCHEMA_NOT_FOUND\]|\[PATH_NOT_FOUND\]|\[DELTA_TABLE_NOT_FOUND\]"
        r"|\[DELTA_MISSING_DELTA_TABLE\]",
        "What is read is not there. Check its name, its catalog and schema (`SHOW TABLES`), and whether "
        "what writes it has run; temporary views end with their session.",
    ),
    Failure(
        "exists_already",
        r"\[(?:PATH|TABLE_OR_VIEW|LOCATION|SCHEMA)_ALREADY_EXISTS\]|already exists\. Set mode",
        'What is written is there already. Say what is meant: `mode("overwrite")` replaces it, `mode("append")` adds '
        "to it.",
    ),
    Failure(
        "files_gone",
        r"FILE_NOT_EXIST|underlying files have been updated|DELTA_FILE_NOT_FOUND|FileNotFoundException",
        "Files were removed or replaced after the query had listed them: by an overwrite, a vacuum or a clean-up "
        "beside it. Read the table anew (`REFRESH TABLE`), do not overwrite what is read, and let a "
        "vacuum keep files longer than the longest query.",
    ),
    Failure(
        "file_type",
        r"PARQUET_COLUMN_DATA_TYPE_MISMATCH|SchemaColumnConvertNotSupported",
        "A Parquet file has another type for a column than the schema that it is read with. Read files of both types "
        "apart and cast, or write the old ones anew.",
    ),
    Failure(
        "file_unreadable",
        r"\[FAILED_READ_FILE|is not a Parquet file|CANNOT_READ_FILE_FOOTER",
        "A file cannot be read; the error names it. It is torn, empty or of another format: take it away, or set "
        "spark.sql.files.ignoreCorruptFiles if its rows may be missing.",
    ),
    Failure(
        "delta_schema",
        r"DELTA_FAILED_TO_MERGE_FIELDS|DELTA_METADATA_MISMATCH|A schema mismatch detected when writing|"
        r"DELTA_SCHEMA_CHANGED",
        "The rows have other columns or types than the Delta table. Cast them to its schema; to add columns, write "
        'with `option("mergeSchema", "true")`, to replace the schema, with `overwriteSchema`.',
    ),
    Failure(
        "delta_conflict",
        r"DELTA_CONCURRENT|Concurrent(?:Append|DeleteRead|DeleteDelete|Transaction|Write)Exception|"
        r"MetadataChangedException|ProtocolChangedException",
        "Another writer has changed the same part of the Delta table meanwhile. Run it again; to have both side by "
        "side, partition the table and name the partition in the condition of each.",
    ),
    Failure(
        "merge_matches",
        r"DELTA_MULTIPLE_SOURCE_ROW_MATCHING|MERGE_CARDINALITY_VIOLATION",
        "Several rows of the source match one row of the target of a MERGE. Keep one row for each key before: "
        "`row_number()` over the key, the newest first.",
    ),
    # Streams.
    Failure(
        "offsets_gone",
        r"KAFKA_DATA_LOSS|Some data may have been lost because they are not available in Kafka|OffsetOutOfRange",
        "Kafka has deleted records that the query had not read, or the topic was made anew. What is gone cannot be "
        "read: let the topic keep records longer than the query may stand still, and start it from a new "
        "checkpoint, or with `failOnDataLoss` false.",
    ),
    Failure(
        "topic_missing",
        r"UnknownTopicOrPartitionException|UNKNOWN_TOPIC_OR_PARTITION|does not host this topic-partition|"
        r"Topic \S+ not present in metadata",
        "Kafka has no topic of this name. Create it, or correct the name in `subscribe` or `topic`; a broker that "
        "creates topics by itself needs `auto.create.topics.enable`.",
    ),
    Failure(
        "kafka_unreachable",
        r"Timed out waiting for a node assignment|Timed out waiting to send the call|TimeoutException: Call\(callName=|"
        r"TimeoutException: Timeout of \d+ms expired before|No resolvable bootstrap urls",
        "No broker of Kafka answers. Check that the brokers run, and `kafka.bootstrap.servers` and the security "
        "settings from where the driver and the executors run. A query goes on from its checkpoint when it is started "
        "again: nothing is lost that Kafka still has.",
    ),
    Failure(
        "checkpoint_of_another_query",
        r"STATE_STORE_(?:KEY|VALUE)_SCHEMA_NOT_COMPATIBLE|STATEFUL_OPERATOR_NOT_MATCH|StateSchemaNotCompatible|"
        r"sources in the checkpoint offsets and now there are",
        "The checkpoint is of a query with other sources, keys or aggregates: a query with state cannot be changed so. "
        "Undo the change, or start with a new `checkpointLocation`.",
    ),
    Failure(
        "two_queries_one_checkpoint",
        r"CONCURRENT_STREAM_LOG_UPDATE|\[CONCURRENT_QUERY\]|Multiple streaming queries are concurrently using",
        "Two queries use one checkpoint. Stop one, or give each a `checkpointLocation` of its own.",
    ),
    Failure(
        "output_mode",
        r"\[STREAMING_OUTPUT_MODE|Append output mode not supported",
        "This output mode cannot be kept by the query. An aggregation in append mode needs `withWatermark` on its "
        "event time; else use the mode `update`.",
    ),
    # What Spark needs beside itself.
    Failure(
        "jdbc_driver",
        r"No suitable driver|ClassNotFoundException: [\w.]*(?:jdbc|Driver)",
        "The JDBC driver of the database is not there. Name its coordinates in spark.jars.packages before Spark "
        'starts, and its class in `option("driver", ...)`.',
    ),
    Failure(
        "credentials",
        r"NoAuthWithAWSException|NoAwsCredentials|InvalidAccessKeyId|SignatureDoesNotMatch|AccessDenied|"
        r"Status Code: 40[13]|403 Forbidden|password authentication failed|Access denied for user",
        "The storage or the database refuses the credentials, or the rights that they have. Check them where the "
        "driver and the executors run, and what the account may do.",
    ),
    Failure(
        "connector_missing",
        r"\[DATA_SOURCE_NOT_FOUND\]|Failed to find (?:the )?data source|ClassNotFoundException|NoClassDefFoundError",
        "A class is not there: the JAR of a connector is missing, or is of another version of Spark or Scala. Name its "
        "coordinates in spark.jars.packages before Spark starts.",
    ),
    Failure(
        "unreachable",
        r"Connection refused|UnknownHostException|Communications link failure|Temporary failure in name resolution|"
        r"No route to host",
        "A service does not answer. Check its host and port from where the driver and the executors run.",
    ),
    Failure(
        "serializer_buffer",
        r"Kryo serialization failed: Buffer overflow",
        "One row or closure is larger than spark.kryoserializer.buffer.max: raise it, or make the object smaller.",
    ),
)
"""Each comes before those that its error also fits."""


def failure_of(error: str) -> Failure | None:
    """The kind of a failure, with its advice about this one; None of one that is not known here.

    Args:
        error: The whole error, with its causes and stacks.
    """
    for failure in FAILURES:
        if match := re.search(failure.error, error):
            return replace(failure, advice=failure.advice.format_map(match.groupdict()))
    return None
