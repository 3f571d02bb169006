"""Progresses of streaming queries as Spark 4.2 writes them, with other values where a test says so."""

import json
from typing import Any

from spark_app.vocabulary.spark_progress import Progress, parse

TOPIC = "user_events"
INPUT = f"input {TOPIC}"


def progress(**changes: Any) -> Progress:
    """A micro-batch of 100 records of a topic of two partitions, 30 of which are still unread."""
    return parse(progress_json(**changes))


def progress_json(**changes: Any) -> str:
    """The same, as Spark writes it."""
    content: dict[str, Any] = {
        "id": "33a6c778-8e36-46e8-92f9-757dd5626d1b",
        "runId": "85b02986-e1e6-43f3-b45b-9e115075b97c",
        "name": "streaming.events",
        "timestamp": "2026-01-01T00:00:00.000Z",
        "batchId": 4,
        "batchDuration": 2000,
        "numInputRows": 100,
        "inputRowsPerSecond": 20.5,
        "processedRowsPerSecond": 50.0,
        "durationMs": {"addBatch": 1500, "commitOffsets": 100, "latestOffset": 50, "new": 5, "triggerExecution": 2000},
        "eventTime": {"max": "2025-12-31T23:59:50.000Z", "watermark": "2025-12-31T23:49:50.000Z"},
        "stateOperators": [
            {
                "operatorName": "dedupeWithinWatermark",
                "numRowsTotal": 70,
                "memoryUsedBytes": 5000,
                "commitTimeMs": 400,
                "numRowsDroppedByWatermark": 3,
                "customMetrics": {"numDroppedDuplicateRows": 7},
            },
            {"operatorName": "stateStoreSave", "numRowsTotal": 5, "memoryUsedBytes": 600, "commitTimeMs": 20},
        ],
        "sources": [
            {
                "description": "KafkaV2[Subscribe[user_events]]",
                "startOffset": {TOPIC: {"0": 0, "1": 0}},
                "endOffset": {TOPIC: {"0": 60, "1": 40}},
                "latestOffset": {TOPIC: {"0": 80, "1": 50}},
                "numInputRows": 100,
            }
        ],
        "sink": {"description": "DeltaSink", "numOutputRows": -1},
        "observedMetrics": {INPUT: {"newest": "2025-12-31 23:59:52"}, "rows": {"unknown_fields": 2}},
    }
    return json.dumps(content | changes)


def source(latest: object, end: object, rows: int | None = 100) -> list[dict[str, Any]]:
    """A source with other offsets."""
    return [{"description": "a source", "latestOffset": latest, "endOffset": end, "numInputRows": rows}]
