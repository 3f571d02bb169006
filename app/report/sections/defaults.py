"""What Spark does where nothing is said, and whether a value says the same in other words: `1024m` is `1g`."""

import re
from typing import Final

DEFAULTS: Final = {
    "spark.broadcast.blockSize": "4m",
    "spark.broadcast.compress": "true",
    "spark.checkpoint.compress": "true",
    "spark.cleaner.periodicGC.interval": "30min",
    "spark.cleaner.referenceTracking": "true",
    "spark.decommission.enabled": "false",
    "spark.driver.cores": "1",
    "spark.driver.maxResultSize": "1g",
    "spark.driver.memory": "1g",
    "spark.driver.memoryOverheadFactor": "0.1",
    "spark.driver.userClassPathFirst": "false",
    "spark.dynamicAllocation.enabled": "false",
    "spark.dynamicAllocation.executorAllocationRatio": "1.0",
    "spark.dynamicAllocation.executorIdleTimeout": "60s",
    "spark.dynamicAllocation.minExecutors": "0",
    "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.eventLog.compress": "true",
    "spark.eventLog.compression.codec": "zstd",
    "spark.eventLog.enabled": "false",
    "spark.eventLog.logStageExecutorMetrics": "false",
    "spark.eventLog.rolling.enabled": "true",
    "spark.eventLog.rolling.maxFileSize": "128m",
    "spark.executor.heartbeatInterval": "10s",
    "spark.executor.memory": "1g",
    "spark.executor.memoryOverheadFactor": "0.1",
    "spark.executor.processTreeMetrics.enabled": "false",
    "spark.executor.userClassPathFirst": "false",
    "spark.files.maxPartitionBytes": "128m",
    "spark.files.openCostInBytes": "4m",
    "spark.io.compression.codec": "lz4",
    "spark.io.compression.lz4.blockSize": "32k",
    "spark.io.compression.zstd.level": "1",
    "spark.io.encryption.enabled": "false",
    "spark.kryo.registrationRequired": "false",
    "spark.kryo.unsafe": "true",
    "spark.kryoserializer.buffer": "64k",
    "spark.kryoserializer.buffer.max": "64m",
    "spark.locality.wait": "3s",
    "spark.memory.fraction": "0.6",
    "spark.memory.offHeap.enabled": "false",
    "spark.memory.offHeap.size": "0b",
    "spark.memory.storageFraction": "0.5",
    "spark.network.timeout": "120s",
    "spark.python.unix.domain.socket.enabled": "false",
    "spark.python.worker.reuse": "true",
    "spark.reducer.maxSizeInFlight": "48m",
    "spark.rpc.message.maxSize": "128",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "30s",
    "spark.scheduler.mode": "FIFO",
    "spark.serializer": "org.apache.spark.serializer.JavaSerializer",
    "spark.shuffle.compress": "true",
    "spark.shuffle.file.buffer": "32k",
    "spark.shuffle.manager": "sort",
    "spark.shuffle.push.enabled": "false",
    "spark.shuffle.registration.timeout": "5s",
    "spark.shuffle.service.enabled": "false",
    "spark.shuffle.service.port": "7337",
    "spark.shuffle.sort.bypassMergeThreshold": "200",
    "spark.shuffle.spill.compress": "true",
    "spark.speculation": "false",
    "spark.speculation.interval": "100ms",
    "spark.speculation.minTaskRuntime": "100ms",
    "spark.speculation.multiplier": "3",
    "spark.speculation.quantile": "0.9",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "64MB",
    "spark.sql.adaptive.coalescePartitions.enabled": "true",
    "spark.sql.adaptive.coalescePartitions.minPartitionSize": "1MB",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "true",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.adaptive.forceOptimizeSkewedJoin": "false",
    "spark.sql.adaptive.localShuffleReader.enabled": "true",
    "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold": "0b",
    "spark.sql.adaptive.optimizeSkewsInRebalancePartitions.enabled": "true",
    "spark.sql.adaptive.skewJoin.enabled": "true",
    "spark.sql.adaptive.skewJoin.skewedPartitionFactor": "5.0",
    "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": "256MB",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.autoBroadcastJoinThreshold": "10MB",
    "spark.sql.avro.compression.codec": "snappy",
    "spark.sql.broadcastTimeout": "300",
    "spark.sql.caseSensitive": "false",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.cbo.enabled": "false",
    "spark.sql.cbo.joinReorder.enabled": "false",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.crossJoin.enabled": "true",
    "spark.sql.csv.filterPushdown.enabled": "true",
    "spark.sql.debug.maxToStringFields": "25",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.pythonUDF.arrow.enabled": "true",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.maxPartitionBytes": "128MB",
    "spark.sql.files.maxRecordsPerFile": "0",
    "spark.sql.files.openCostInBytes": "4MB",
    "spark.sql.inMemoryColumnarStorage.batchSize": "10000",
    "spark.sql.inMemoryColumnarStorage.compressed": "true",
    "spark.sql.join.preferSortMergeJoin": "true",
    "spark.sql.json.filterPushdown.enabled": "true",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.maxPlanStringLength": "2147483632",
    "spark.sql.optimizer.dynamicPartitionPruning.enabled": "true",
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "true",
    "spark.sql.orc.compression.codec": "zstd",
    "spark.sql.orc.filterPushdown": "true",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.compression.codec": "snappy",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.enableVectorizedReader": "true",
    "spark.sql.parquet.filterPushdown": "true",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.mergeSchema": "false",
    "spark.sql.parquet.outputTimestampType": "INT96",
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.pyspark.jvmStacktrace.enabled": "false",
    "spark.sql.repl.eagerEval.enabled": "false",
    "spark.sql.repl.eagerEval.maxNumRows": "20",
    "spark.sql.shuffle.partitions": "200",
    "spark.sql.sources.bucketing.enabled": "true",
    "spark.sql.sources.default": "parquet",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "32",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "true",
    "spark.sql.sources.partitionOverwriteMode": "STATIC",
    "spark.sql.statistics.fallBackToHdfs": "false",
    "spark.sql.statistics.histogram.enabled": "false",
    "spark.sql.storeAssignmentPolicy": "ANSI",
    "spark.sql.streaming.minBatchesToRetain": "100",
    "spark.sql.streaming.noDataMicroBatches.enabled": "true",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.ui.retainedExecutions": "1000",
    "spark.stage.maxConsecutiveAttempts": "4",
    "spark.storage.decommission.enabled": "false",
    "spark.storage.decommission.rddBlocks.enabled": "true",
    "spark.storage.decommission.shuffleBlocks.enabled": "true",
    "spark.storage.memoryMapThreshold": "2m",
    "spark.storage.replication.proactive": "true",
    "spark.task.cpus": "1",
    "spark.task.maxFailures": "4",
    "spark.task.reaper.enabled": "false",
    "spark.ui.enabled": "true",
    "spark.ui.port": "4040",
    "spark.ui.prometheus.enabled": "true",
    "spark.ui.retainedJobs": "1000",
    "spark.ui.retainedStages": "1000",
    "spark.ui.retainedTasks": "100000",
    "spark.ui.showConsoleProgress": "false",
}
"""Of what people set; source: the entries of Spark 4.2 itself, of which a test asks each."""
BEFORE: Final = {
    "spark.checkpoint.compress": ((4, 1), "false"),
    "spark.eventLog.compress": ((4, 0), "false"),
    "spark.eventLog.rolling.enabled": ((4, 0), "false"),
    "spark.speculation.multiplier": ((4, 0), "1.5"),
    "spark.speculation.quantile": ((4, 0), "0.75"),
    "spark.sql.ansi.enabled": ((4, 0), "false"),
    "spark.sql.execution.arrow.pyspark.enabled": ((4, 2), "false"),
    "spark.sql.execution.pythonUDF.arrow.enabled": ((4, 2), "false"),
    "spark.sql.legacy.timeParserPolicy": ((4, 0), "EXCEPTION"),
    "spark.sql.orc.compression.codec": ((4, 0), "snappy"),
    "spark.sql.parquet.datetimeRebaseModeInRead": ((4, 0), "EXCEPTION"),
    "spark.sql.parquet.datetimeRebaseModeInWrite": ((4, 0), "EXCEPTION"),
    "spark.sql.parquet.int96RebaseModeInRead": ((4, 0), "EXCEPTION"),
    "spark.sql.parquet.int96RebaseModeInWrite": ((4, 0), "EXCEPTION"),
    "spark.ui.prometheus.enabled": ((4, 0), "false"),
}
"""From which version on that is so, and what was so before; source: the entries of Spark 3.5, 4.0, 4.1, 4.2 and 4.3."""
_VERSION: Final = re.compile(r"(\d+)\.(\d+)")
_QUANTITY: Final = re.compile(r"(-?\d+(?:\.\d+)?)([a-z]*)")
_POWERS: Final = {"k": 1, "kb": 1, "m": 2, "mb": 2, "g": 3, "gb": 3, "t": 4, "tb": 4}
_BYTES: Final = {"b": 1} | {unit: 1024**power for unit, power in _POWERS.items()}
_SECONDS: Final = {"us": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}
"""Units that Spark knows of; `m` is a minute of time and a mebibyte of size. Source: its `JavaUtils`."""
_IN_MEBIBYTES: Final = re.compile(r"spark\.(driver|executor)\.memory")
_IN_BYTES: Final = re.compile(r"spark\.(sql|files)\..*|spark\.driver\.maxResultSize|spark\.memory\.offHeap\.size")
"""What a number without a unit is; of others nothing is known of it."""


def default_of(key: str, version: str | None) -> str | None:
    """What Spark of a version does where nothing is said; None where that is not known."""
    if key not in BEFORE:
        return DEFAULTS.get(key)
    told = _VERSION.match(version or "")
    since, before = BEFORE[key]
    if told is None:
        return None
    return before if (int(told[1]), int(told[2])) < since else DEFAULTS[key]


def is_default(key: str, value: str, version: str | None) -> bool:
    """Whether Spark would do the same without it; False where the default is not known, or the unit of a number."""
    default = default_of(key, version)
    if default is None:
        return False
    value, default = value.strip().lower(), default.lower()
    told = _quantity(key, value, default)
    return value == default or (told is not None and told == _quantity(key, default, default))


def _quantity(key: str, text: str, default: str) -> float | None:
    """Bytes or seconds, by the unit of the default; a plain number where that has none."""
    found, usual = _QUANTITY.fullmatch(text), _QUANTITY.fullmatch(default)
    if found is None or usual is None:
        return None
    units = {"": 1.0} if not usual[2] else _SECONDS if usual[2] in _SECONDS and usual[2] != "m" else _BYTES
    unit = units.get(found[2]) if found[2] or not usual[2] else _bare(key)
    return None if unit is None else float(found[1]) * unit


def _bare(key: str) -> float | None:
    if _IN_MEBIBYTES.fullmatch(key):
        return 1024.0**2
    return 1.0 if _IN_BYTES.fullmatch(key) else None
