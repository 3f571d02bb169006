"""A query that asks a service about each order; the service takes a second for an answer.

The service is in this program, and the executors ask it by HTTP.
"""

import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from pyspark.sql import SparkSession

PORT = 18765
TRIGGER = "2 seconds"
ANSWER_SECONDS = 1.0
SECONDS = 45
"""A query is judged at its end, or after a quarter of an hour."""


class Service(BaseHTTPRequestHandler):
    """Answers each request, late."""

    def do_GET(self) -> None:
        """Answers after a while."""
        time.sleep(ANSWER_SECONDS)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_: object) -> None:
        """Says nothing."""


service = ThreadingHTTPServer(("0.0.0.0", PORT), Service)
threading.Thread(target=service.serve_forever, daemon=True).start()
spark = SparkSession.builder.appName(sys.argv[1]).config("spark.sql.shuffle.partitions", "2").getOrCreate()
url = f"http://{socket.gethostname()}:{PORT}/"
asked = f"reflect('scala.io.Source', 'fromURL', concat('{url}', value), 'UTF-8') AS answer"
orders = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 8).option("numPartitions", 2).load()
query = (
    orders.selectExpr("value", asked)
    .writeStream.queryName("orders_with_answers")
    .format("noop")
    .option("checkpointLocation", f"/data/incidents/{sys.argv[1]}")
    .trigger(processingTime=TRIGGER)
    .start()
)
try:
    query.awaitTermination(SECONDS)
finally:
    query.stop()
    spark.stop()
