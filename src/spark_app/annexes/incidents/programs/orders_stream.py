"""A query that reads orders from a topic of its own, which gets so many a second; it reads a few in each batch.

Arguments: the name of the application, which the topic has, too, orders a second, and how many a batch reads at
most, and for how many seconds it reads.
"""

import itertools
import sys
import threading
import time
from contextlib import suppress

from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic
from kafka.errors import KafkaError, TopicAlreadyExistsError
from pyspark.sql import DataFrame, SparkSession

SERVERS = "kafka:19092"
TRIGGER = "2 seconds"
PATIENCE_MS = "10000"
"""How long the query waits for a broker that does not answer before it fails."""

topic, rate, most, seconds = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])


def send() -> None:
    """Sends orders until the program ends; while there is no broker, they are lost."""
    producer = KafkaProducer(bootstrap_servers=SERVERS, max_block_ms=1000)
    for number in itertools.count():
        with suppress(KafkaError):
            producer.send(topic, f"order {number}".encode())
        time.sleep(1 / rate)


def write(orders: DataFrame, number: int) -> None:
    """Reads a batch, and says so."""
    orders.write.format("noop").mode("overwrite").save()
    print(f"batch {number}", flush=True)


with suppress(TopicAlreadyExistsError):
    KafkaAdminClient(bootstrap_servers=SERVERS).create_topics([NewTopic(topic, 2, 1)])
threading.Thread(target=send, daemon=True).start()
spark = SparkSession.builder.appName(topic).config("spark.sql.shuffle.partitions", "2").getOrCreate()
reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", SERVERS).option("subscribe", topic)
patient = reader.option("kafka.default.api.timeout.ms", PATIENCE_MS).option("kafka.request.timeout.ms", "5000")
orders = patient.option("maxOffsetsPerTrigger", most).option("startingOffsets", "earliest").load()
query = (
    orders.selectExpr("string(value) AS value")
    .writeStream.queryName(topic)
    .foreachBatch(write)
    .option("checkpointLocation", f"/data/incidents/{topic}")
    .trigger(processingTime=TRIGGER)
    .start()
)
try:
    query.awaitTermination(seconds)
finally:
    query.stop()
    spark.stop()
