"""Will this transaction be refunded? Answers requests with the version of `ml.refunds` in production."""

from typing import Final

from app import topics
from app.ml.refunds import refunded
from spark_app import model

PREDICTIONS: Final = model.answers(refunded, requests=topics.PREDICTION_REQUESTS, replies=topics.PREDICTIONS)
