"""Records that are sent: to a topic of Kafka, or, without Kafka, to a JSON Lines file of the topic's folder."""

from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame

from app.pipeline.topics import OUTGOING
from app.settings import Settings
from app.spark.kafka import sink_options
from app.warehouse import hadoop_files

MOST_FILES: Final = 1_800
"""Files of the demo shop that each outgoing topic keeps; nobody reads them. An hour at one file in two seconds."""


def send(records: DataFrame, topic: str, settings: Settings, *, name: str) -> None:
    """Sends the records of a batch frame, each at least once.

    A file holds values only. It appears whole, and is not written again if there is one of its name.

    Columns in: key, value, headers, as in `RECORD`.

    Args:
        records: The records.
        topic: The topic.
        settings: Where topics are.
        name: The name of the file, without its suffix: the same for the same records.
    """
    if settings.kafka.servers:
        writer = records.write.format("kafka").options(**sink_options(settings.kafka))
        writer.option("topic", topic).save()
        return
    values = [bytes(row.value) for row in records.select("value").collect()]
    if values:
        path = f"{settings.landing_path}/{topic}/{name}.jsonl"
        hadoop_files.write_once(records.sparkSession, path, b"".join(value + b"\n" for value in values))
        if settings.is_stream_demo and topic in OUTGOING:
            delete_oldest(Path(path).parent)


def delete_oldest(folder: Path) -> None:
    """Deletes the oldest files of a topic, and their checksums, beyond the most that are kept."""
    files = sorted(folder.glob("*.jsonl"), key=lambda file: file.stat().st_mtime_ns)
    for file in files[:-MOST_FILES]:
        file.unlink(missing_ok=True)
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
