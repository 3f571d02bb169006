"""Models as a project declares them; each mistake is one line with its place, before Spark starts."""

import datetime
import importlib
import re
from pathlib import Path
from typing import Any

import pytest

from spark_app.declarations.answers import Answers
from spark_app.errors import ConfigError, SparkAppError
from spark_app.execution import pipelines
from spark_app.settings import load_pipeline_config

RETURNS = '''"""Will this order be returned?"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from {package}.etl import daily_orders
from spark_app import model


@model.features(
    daily_orders.orders,
    key="order_id",
    entity="country",
    at="ordered_at",
    known=["amount"],
    window_days=3,
    adds="orders_before bigint",
    features=[
        model.category("size", "price", "small or large", lambda amount: F.when(amount < 9, "small")),
        model.number("amount_log", "price", "logarithm of the amount", lambda amount: F.log1p(amount)),
        model.number("orders_before", "place", "orders of the country in the days before"),
    ],
)
def with_history(rows: DataFrame, orders: DataFrame) -> DataFrame:
    """One row per order."""
    return rows.join(orders.groupBy("country").agg(F.count("*").alias("orders_before")), "country")


@model.labels(with_history, scores="return_scores", candidates={{"random_forest": {{"numTrees": [20]}}}})
def returned(rows: DataFrame, daily_orders: DataFrame, *, label_days: int = 2) -> DataFrame:
    """One row per order: whether it came back."""
    return rows.select("order_id", F.lit(True).alias("label"))
'''
ANSWERS = '''"""Answers requests."""

from {package}.ml.returns import returned
from spark_app import Topic, model

SCHEMA = "id string, order_id string, country string, ordered_at timestamp, amount decimal(12, 2)"
REQUESTS = Topic("requests", schema=SCHEMA, key="id", event_time="ordered_at")

ANSWERS = model.answers(returned, requests=REQUESTS, replies="replies")
'''
FILES = {"ml/returns.py": RETURNS, "streaming/answers.py": ANSWERS}
MISTAKES = [
    (
        20,
        "lambda amount: F.log1p(amount)",
        "lambda amout: F.log1p(amout)",
        r"the feature amount_log reads amout, which is not known of orders .*: do you mean amount\?",
    ),
    (
        21,
        'number("orders_before"',
        'number("orders_befor"',
        r"the feature orders_befor reads orders_befor, .*: do you mean orders_before\?",
    ),
    (21, 'number("orders_before"', 'number("size"', r"the feature size is declared twice, here and in line 19"),
    (20, 'number("amount_log"', 'number("order_id"', r"order_id identifies a row of orders: it is no feature"),
    (10, 'known=["amount"]', 'known=["amounts"]', r"orders has no column amounts: do you mean amount\?"),
    (10, 'key="order_id"', 'key="order"', r"orders has no column order: do you mean order_id\?"),
    (10, 'at="ordered_at"', 'at="day"', r"day is no timestamp: it is the instant"),
    (
        10,
        'orders_before bigint"',
        'orders_before bigger"',
        r"schema: orders_before: 'bigger' is no type of Spark; do you mean ",
    ),
    (None, "window_days=3", "window_day=3", r"TypeError: features\(\) got an unexpected keyword argument 'window_day'"),
    (
        24,
        "with_history(rows: DataFrame, orders: DataFrame)",
        "with_history(rows: DataFrame, order: DataFrame)",
        r"with_history reads order, which no pipeline writes: do you mean orders\?",
    ),
    (
        24,
        "with_history(rows: DataFrame, orders: DataFrame)",
        "with_history()",
        r"with_history needs a first parameter, which gets the rows of orders",
    ),
    (
        24,
        "with_history(rows: DataFrame, orders",
        "with_history(rows: DataFrame, *orders",
        r"with_history: \*orders is no table: name each table",
    ),
    (
        30,
        "daily_orders: DataFrame, *, label_days",
        "daily_order: DataFrame, *, label_days",
        r"returned reads daily_order, which no pipeline writes: do you mean daily_orders\?",
    ),
    (
        30,
        ", *, label_days: int = 2)",
        ")",
        r"returned needs the parameter label_days: `def returned\(rows, ..., \*, label_days: int\)`",
    ),
    (30, "*, label_days: int", "*, label_day: int, label_days: int", r"returned: nothing gives it label_day: "),
    (
        30,
        "label_days: int = 2",
        "label_days: int = 0",
        r"returned: label_days cannot be 0: it is a number of days, from 1",
    ),
    (None, "scores=", "score=", r"TypeError: labels\(\) got an unexpected keyword argument 'score'"),
    (None, "@model.labels(with_history", "@model.labels(with_histry", r"NameError: name 'with_histry' is not defined"),
    (None, "model.category(", "model.categry(", r"AttributeError: .* has no attribute 'categry'"),
]


@pytest.fixture
def shop(shop: Path) -> Path:
    """The package of a project with a model and a query that answers."""
    for name, text in FILES.items():
        (shop / name).parent.mkdir(exist_ok=True)
        (shop / name).with_name("__init__.py").touch()
        (shop / name).write_text(text.format(package=shop.name), encoding="utf-8")
    importlib.invalidate_caches()
    return shop


def changed(shop: Path, file: str, right: str, wrong: str) -> None:
    """Replaces a part of a file."""
    text = (shop / file).read_text(encoding="utf-8")
    assert right in text
    (shop / file).write_text(text.replace(right, wrong), encoding="utf-8")


def test_labels_make_a_pipeline(shop: Path) -> None:
    """It reads the tables that its functions name, and writes a table of scores with the keys of the examples."""
    [found] = pipelines.load("ml").values()
    assert (found.name, found.reads) == ("ml.returns", ("orders", "daily_orders"))
    assert found.trains is not None
    assert found.trains.name == "ml.returns"
    [scores] = found.writes
    assert (scores.name, scores.day) == ("return_scores", "day")
    assert scores.schema.names == [
        "order_id", "country", "ordered_at", "probability", "is_flagged", "model_version", "day",
    ]  # fmt: skip
    answers = pipelines.load("streaming")["streaming.answers"]
    assert isinstance(answers, Answers)
    assert (answers.topics, answers.reads, answers.keys) == (("requests",), ("orders",), ["id", "order_id"])
    assert shop.is_dir()


def test_a_model_needs_no_configuration(shop: Path) -> None:
    """It has the candidates of its declaration, and a history that is longer than the window; a file says otherwise."""
    [pipeline] = pipelines.load("ml").values()
    config: Any = load_pipeline_config("ml.returns", pipeline.config, shop.parent / "config")
    assert pipeline.trains is not None
    assert (config.label_days, config.candidates) == (2, {"random_forest": {"numTrees": [20]}})
    periods = pipeline.trains.periods(config, datetime.date(2024, 1, 10))
    assert (periods.first, periods.train_last) == (datetime.date(2024, 1, 4), datetime.date(2024, 1, 5))
    file = shop.parent / "config" / "ml" / "returns.yml"
    file.parent.mkdir()
    file.write_text("candidates: {logistic_regression: {}}\nslices: [size]\n", encoding="utf-8")
    config = load_pipeline_config("ml.returns", pipeline.config, shop.parent / "config")
    assert (config.candidates, config.slices) == ({"logistic_regression": {}}, ["size"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("slices: [sice]", r"returns\.yml:1: slices: .*sice is no category among the features: do you mean size\?"),
        ("candidates: {random_tree: {}}", r"returns\.yml:1: candidates\.random_tree"),
        ("hold_out_days: 1", r"returns\.yml:1: unknown key 'hold_out_days'; do you mean held_out_days\? allowed are "),
    ],
)
def test_a_wrong_configuration_is_one_line(shop: Path, text: str, message: str) -> None:
    """With what is allowed."""
    [pipeline] = pipelines.load("ml").values()
    file = shop.parent / "config" / "ml" / "returns.yml"
    file.parent.mkdir()
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        load_pipeline_config("ml.returns", pipeline.config, shop.parent / "config")


@pytest.mark.parametrize(("line", "right", "wrong", "message"), MISTAKES, ids=[each[3] for each in MISTAKES])
def test_a_mistake_is_one_line_with_its_place(
    shop: Path, line: int | None, right: str, wrong: str, message: str
) -> None:
    """And with the nearest right name, where a name is wrong."""
    changed(shop, "ml/returns.py", right, wrong)
    with pytest.raises(SparkAppError) as raised:
        pipelines.load("ml")
    assert (raised.value.exit_code, str(raised.value).count("\n")) == (2, 0)
    assert re.search(rf"^{shop.name}/ml/returns\.py:{line or '[0-9]+'}: {message}", str(raised.value)), raised.value


def test_a_module_declares_one_model(shop: Path) -> None:
    """The second one is refused."""
    text = (shop / "ml" / "returns.py").read_text(encoding="utf-8")
    labels = text[text.index("@model.labels") :].replace("def returned", "def lost")
    (shop / "ml" / "returns.py").write_text(f"{text}\n\n{labels}", encoding="utf-8")
    with pytest.raises(SparkAppError, match=r"returns\.py:36: ml\.returns declares returned already: one module"):
        pipelines.load("ml")


def test_requests_have_what_is_known_of_an_example(shop: Path) -> None:
    """Without a column there are no features."""
    changed(shop, "streaming/answers.py", "amount decimal", "amounts decimal")
    message = r"answers\.py:9: the topic requests has no column amount, which ml\.returns needs: do you mean amounts\?"
    with pytest.raises(SparkAppError, match=message):
        pipelines.load("streaming")
