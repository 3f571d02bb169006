"""Mistakes in the declaration of a query or a topic: each is one line with its place, before Spark starts."""

import re
from pathlib import Path
from typing import Final

import pytest

from spark_app.errors import ConfigError, SparkAppError
from spark_app.execution import pipelines
from spark_app.execution.run import load_jobs
from spark_app.settings import load_settings

TOPICS: Final = "topics.py"
QUERY: Final = "streaming/views_per_page.py"
PARAMETERS: Final = 'page_views: DataFrame, *, window: stream.Interval = "5 minutes"'
MISTAKES: Final = [
    (TOPICS, 5, "page string", "page strng", r"schema: page: 'strng' is no type of Spark; do you mean string\?"),
    (TOPICS, 5, "page string", "page binary", r"topic page_views: page is binary, which is not read from JSON: take "),
    (TOPICS, 5, 'key="view_id"', 'key="view"', r"topic page_views has no column view: do you mean view_id\?"),
    (TOPICS, 5, "timestamp timestamp", "at timestamp", r"topic page_views has no column timestamp: there are view_id"),
    (TOPICS, 5, "timestamp timestamp", "timestamp date", r"topic page_views: timestamp must be a timestamp: it is the"),
    (TOPICS, 5, 'key="view_id"', 'key="view_id", optional=["pge"]', r"topic page_views has no column pge: do you mean"),
    (TOPICS, 5, "PAGE_VIEWS = Topic(", "PAGE_VIEWS = Topc(", r"NameError: name 'Topc' is not defined"),
    (TOPICS, 5, 'key="view_id",\n)', 'key="view_id",\n', r"Python cannot read this: '\(' was never closed"),
    (QUERY, 17, "(page_views: ", "(page_view: ", r"views_per_page reads no topic: do you mean page_views\?"),
    (QUERY, 17, PARAMETERS, "", r"views_per_page reads nothing: name the topics that it reads as its parameters"),
    (
        QUERY,
        17,
        "(page_views: DataFrame, ",
        "(page_views: DataFrame, daily_order: DataFrame, ",
        r"views_per_page reads daily_order, which is no topic, and no table .*: do you mean daily_orders\?",
    ),
    (QUERY, 17, "*, window", "*more, window", r"views_per_page: \*more is no topic and no table: name each one"),
    (QUERY, 17, "window: stream.Interval = ", "window = ", r"views_per_page: the option window has no type: write one"),
    (QUERY, 17, '"5 minutes"', '"5 minuts"', r"views_per_page: window cannot be '5 minuts': String should match "),
    (QUERY, 17, "*, window:", "*, trigger:", r"views_per_page: every query has an option trigger: choose another name"),
    (QUERY, None, "stream.Interval", "stream.Intervall", r"AttributeError: .* has no attribute 'Intervall'"),
    (QUERY, 9, "views bigint", "views bigit", r"schema: views: 'bigit' is no type of Spark; do you mean bigint\?"),
    (QUERY, 9, 'watermark="10', 'partition_by="pag", watermark="10', r"the schema has no column pag: do you mean page"),
    (QUERY, 9, "stream.table(", "stream.state(key='pge', ", r"the schema has no column pge: do you mean page\?"),
    (
        QUERY,
        17,
        "stream.table(",
        "stream.state(key='page', ",
        r"views_per_page needs a parameter views_per_page, ",
    ),
    (QUERY, 9, "stream.table(", "stream.topic(key='pge', ", r"the schema has no column pge: do you mean page\?"),
    (
        QUERY,
        9,
        "    schema=",
        "    expect=[expect.at_least('view', 1)], schema=",
        r"the schema has no column view: do you mean views\?",
    ),
]


@pytest.mark.parametrize(("file", "line", "right", "wrong", "message"), MISTAKES, ids=[each[4] for each in MISTAKES])
def test_a_mistake_is_one_line_with_its_place(
    shop: Path, file: str, line: int | None, right: str, wrong: str, message: str
) -> None:
    """And with the nearest right name, where a name is wrong."""
    text = (shop / file).read_text(encoding="utf-8")
    assert right in text
    text = text.replace(right, wrong).replace("import stream\n", "import expect, stream\n")
    (shop / file).write_text(text, encoding="utf-8")
    with pytest.raises(SparkAppError) as raised:
        pipelines.load("streaming")
    assert (raised.value.exit_code, str(raised.value).count("\n")) == (2, 0)
    place = rf"^{shop.name}/{re.escape(file)}:{line or '[0-9]+'}: "
    assert re.search(place + message, str(raised.value)), str(raised.value)


def test_a_query_is_what_is_declared(shop: Path) -> None:
    """Its options are those of every query, and the function's; what the file does not say is as declared."""
    [query] = pipelines.load("streaming").values()
    assert (query.topics, query.reads, query.sends) == (("page_views",), (), ())
    assert [table.name for table in query.writes] == ["views_per_page"]
    (shop.parent / "config" / "streaming" / "views_per_page.yml").write_text("window: 1 hour\n", encoding="utf-8")
    [job] = load_jobs(load_settings(), "streaming")
    assert (job.config.window, job.config.watermark, job.config.trigger) == ("1 hour", "10 minutes", "5 seconds")


def test_an_option_without_a_default_must_be_configured(shop: Path) -> None:
    """The line names the file and the key; so does one about a key that nothing has."""
    module = shop / QUERY
    module.write_text(module.read_text(encoding="utf-8").replace(' = "5 minutes"', ""), encoding="utf-8")
    file = shop.parent / "config" / "streaming" / "views_per_page.yml"
    for text, problem in {
        "trigger: 1 second\n": "key 'window' is missing",
        "window: 5 minutes\nwindw: 1\n": r"unknown key 'windw'; do you mean window\?",
    }.items():
        file.write_text(text, encoding="utf-8")
        with pytest.raises(ConfigError, match=rf"views_per_page.yml(:2)?: {problem}"):
            load_jobs(load_settings(), "streaming")


def test_a_module_declares_one_query(shop: Path) -> None:
    """The second one is named."""
    module = shop / QUERY
    text = module.read_text(encoding="utf-8")
    module.write_text(text + text[text.index("@stream") :].replace("def views_per_page", "def more"), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"views_per_page.py:29: streaming\.views_per_page declares views_per"):
        pipelines.load("streaming")


def test_a_query_hides_no_dead_letters(shop: Path) -> None:
    """They need a module of their own, else they would be kept nowhere."""
    with (shop / QUERY).open("a", encoding="utf-8") as module:
        module.write("\n\nLETTERS = stream.dead_letters([])\n")
    with pytest.raises(ConfigError, match=r"streaming\.views_per_page declares views_per_page already"):
        pipelines.load("streaming")
