"""Models, declared as functions: `from spark_app import model`.

::

    @model.features(
        orders,
        key="order_id",
        entity="customer_id",
        at="ordered_at",
        known=("amount", "country"),
        window_days=7,
        adds="orders_before bigint",
        features=[
            model.category("country", "place", "where it is shipped to"),
            model.number("amount_log", "price", "logarithm of the amount", lambda amount: F.log(amount + 1)),
            model.number("orders_before", "customer", "orders of the customer in the days before"),
        ],
    )
    def with_history(rows: DataFrame, orders: DataFrame) -> DataFrame: ...

    @model.labels(with_history, scores="return_scores")
    def returned(rows: DataFrame, returns: DataFrame, *, label_days: int) -> DataFrame: ...

The first parameter of a function gets the examples, which are rows of a table, each other one is the name of a table
that it reads: of one that is partitioned by days the rows of the days of the examples, of the window before them
(features) or of the `label_days` after them (labels). A feature is a column of the examples, or a function whose
parameters are columns: those known at the instant of an example, and those that are added to them.

A module with labels is one model: it is trained, judged, promoted and applied as every model is. `model.answers`
declares the query that answers requests about examples with the version in production.
"""

from collections.abc import Callable, Sequence

from pyspark.sql import Column
from pyspark.sql.types import BooleanType, DoubleType, LongType, StructType, TimestampType

from spark_app.declarations.answers import Answers
from spark_app.declarations.declaration import Declared, Transform
from spark_app.declarations.model_pipeline import DeclaredFeature, DeclaredFeatures, DeclaredModel, checked
from spark_app.engine.code_location import CodeLocation, nearest, parsed
from spark_app.engine.model import Candidates
from spark_app.engine.topics import Topic
from spark_app.models.inputs import Examples, Feature
from spark_app.runs.model_card import PREDICTION
from spark_app.warehouse.schemas import column
from spark_app.warehouse.tables import Table

Value = Callable[..., Column]


def category(name: str, group: str, meaning: str, value: Value | None = None) -> Feature:
    """A feature that is text, and may be null.

    Args:
        name: Its name.
        group: What it is about: the drifts of the features of a group are seen together.
        meaning: One line.
        value: Computes it of columns, each a parameter of its name; without it, it is the column of its name.
    """
    return DeclaredFeature(name, "category", group, meaning, value, location=CodeLocation.of_caller())


def number(name: str, group: str, meaning: str, value: Value | None = None) -> Feature:
    """A feature that is a number, 0 where it is unknown; for the arguments see `category`."""
    return DeclaredFeature(name, "number", group, meaning, value, location=CodeLocation.of_caller())


def features(
    examples: Declared | Table,
    *,
    key: str,
    entity: str,
    at: str,
    known: Sequence[str],
    features: Sequence[Feature],
    window_days: int = 0,
    adds: str | StructType = "",
) -> Callable[[Transform], DeclaredFeatures]:
    """Declares features of the rows of a table.

    Args:
        examples: The table whose rows they are of; it is partitioned by days.
        key: The column that identifies a row.
        entity: The column that identifies whose history counts, such as a customer.
        at: The column with the instant at which a model is asked about a row.
        known: The other columns that are known at that instant, and that a request has.
        features: The features.
        window_days: How many days before a row its features look at.
        adds: The columns that the function adds to those that are known, as Spark writes them.

    Raises:
        DeclarationError: The table has no days, or not one of the columns; a feature is declared twice, or reads a
            column that is not there.
    """
    location = CodeLocation.of_caller()
    table = examples.table if isinstance(examples, Declared) else examples
    location.require((key, entity, at, *known), table.schema.names, table.name)
    if not isinstance(table.schema[at].dataType, TimestampType):
        raise location.error(f"{at} is no timestamp: it is the instant at which a model is asked about a row")
    if table.day is None:
        raise location.error(f"{table.name} is not partitioned by days: a model learns from days that are over")
    found = Examples(table.name, table.day, key, entity, at, tuple(dict.fromkeys((key, entity, at, *known))))
    added = parsed(adds, location).names if adds else []

    def declare(function: Transform) -> DeclaredFeatures:
        columns, day = [table.schema[name] for name in found.keys], table.schema[found.day]
        given = (found, features, window_days, function, CodeLocation.of(function), added, columns, day)
        return checked(DeclaredFeatures(*given))

    return declare


def labels(
    features: DeclaredFeatures, *, scores: str, candidates: Candidates | None = None
) -> Callable[[Transform], DeclaredModel]:
    """Declares a model: the labels of the examples of features.

    The function returns the key of each example, and its `label`: true, or 1, for the rare class. What is known within
    `label_days`, which it gets, counts.

    Args:
        features: The features.
        scores: The table that the scores of a day are written to.
        candidates: By algorithm the values of each parameter of MLlib to try; the configuration may say otherwise.

    Raises:
        DeclarationError: The function lacks a parameter that it needs, or has one that is no table.
    """

    def declare(function: Transform) -> DeclaredModel:
        name = ".".join(function.__module__.split(".")[-2:])
        table = Table(scores, _of_scores(features), (features.examples.day,))
        return checked(DeclaredModel(name, features, table, function, CodeLocation.of(function), candidates))

    return declare


def answers(model: DeclaredModel, *, requests: Topic, replies: str | Topic) -> Answers:
    """Declares the query that answers requests with the version of a model in production.

    Args:
        model: The model.
        requests: The topic of the requests: its values have the columns that are known of an example.
        replies: The topic of the replies.

    Raises:
        DeclarationError: A request lacks a column.
    """
    location = CodeLocation.of_caller()
    for name in model.examples.known:
        if name not in requests.schema.names:
            raise location.error(
                f"the topic {requests.name} has no column {name}, which {model.name} needs: "
                f"{nearest(name, requests.schema.names)}"
            )
    return Answers(model, requests, replies if isinstance(replies, str) else replies.name, location)


def _of_scores(features: DeclaredFeatures) -> StructType:
    """The columns of the table of scores: the keys of an example, and what a version says of it."""
    return StructType(
        [
            *features.keys,
            column(PREDICTION, DoubleType(), "estimated probability of the label"),
            column("is_flagged", BooleanType(), "whether the probability reaches the threshold of the version"),
            column("model_version", LongType(), "version of the model"),
            features.day,
        ]
    )
