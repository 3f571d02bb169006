"""What an edit of a project does to its tables is said as it is: above all, none is called harmless that is not."""

import importlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from spark_app.execution.plan import Plan, of_project
from spark_app.execution.run import load_jobs, with_fingerprints
from spark_app.settings import load_settings
from spark_app.warehouse import delta_log
from tests.planned_shop import FILES

ORDERS, REPORTS, PRICES, TEXTS = (f"planned/{name}.py" for name in ("etl/orders", "etl/reports", "prices", "texts"))
SOURCES, RATES, VIEWS = (f"planned/{name}.py" for name in ("sources", "rates", "streaming/views"))
ROWS, CHECKED, ADDED, BREAKING = "rows may differ", "checked differently", "columns added", "breaking"
SAME: Final[dict[str, str]] = {}
OF_ORDERS: Final = dict.fromkeys(["totals", "names", "copies", "countries", "best", "ledger"], ROWS)
"""What follows where any column of the orders may differ."""
ALL_ORDERS: Final = {"orders": ROWS, **OF_ORDERS}
ALL_RAW: Final = {"raw_orders": ROWS, **ALL_ORDERS}
EVERYTHING: Final = {**ALL_RAW, "views": ROWS}
OF_TOTALS: Final = {"totals": ROWS, "best": ROWS, "ledger": ROWS}
OF_CENTS: Final = {"copies": ROWS, "countries": ROWS}
"""What uses rows of orders whole."""
CENTS: Final = {"orders": ROWS, **OF_CENTS}


class Edit(NamedTuple):
    """An edit of the project.

    Attributes:
        name: What is done.
        files: By file, texts and what replaces them; a file that is not there is written whole.
        states: The states of the tables that are not unchanged.
        base: What the project has before that, beside what it always has.
        variables: Of the environment.
    """

    name: str
    files: Mapping[str, Sequence[tuple[str, str]]]
    states: Mapping[str, str]
    base: Mapping[str, Sequence[tuple[str, str]]] = {}
    variables: Mapping[str, str] = {}


def edit(name: str, file: str, old: str, new: str, states: Mapping[str, str]) -> Edit:
    """An edit in one place."""
    return Edit(name, {file: [(old, new)]}, states)


LAZY: Final = {
    REPORTS: [("    shown = ", "    from planned.lazy import MARK\n    shown = "), ("'{texts.HIDDEN}'", "'{MARK}'")],
    "planned/lazy.py": [("", "MARK = 'XX'\n")],
}
RELATIVE: Final = {
    **LAZY,
    REPORTS: [(old, new.replace("from planned.lazy", "from ..lazy")) for old, new in LAZY[REPORTS]],
}
BY_NAME: Final = {
    REPORTS: [("import planned.texts as texts", "import importlib\n\nimport planned.texts as texts"),
              ("texts.clean(", "importlib.import_module('planned.' + 'texts').clean(")],
}  # fmt: skip
AS_VALUE: Final = {REPORTS: [("texts.clean(", "getattr(texts, 'cle' + 'an')(")]}

GROSS: Final = """def gross(amount, *factors, digits=2):
    for factor in factors:
        amount = amount * factor
    return F.round(amount, digits)
"""
DAYS: Final = """@daily.table(schema="day date", partition_by="day")
def days(orders):
    return orders


"""

EDITS: Final = [
    Edit(
        "code beside the project, which no version of a package stands for",
        {"planned_beside.py": [("XX", "YY")]},
        {"names": ROWS},
        {
            "planned_beside.py": [("", "MARK = 'XX'\n")],
            TEXTS: [('HIDDEN = "XX"', "from planned_beside import MARK as HIDDEN")],
        },
    ),
    Edit(
        "a value that is named as a secret",
        {TEXTS: [('API_KEY = "XX"', 'API_KEY = "YY"')]},
        {"names": ROWS},
        {TEXTS: [("HIDDEN", "API_KEY")], REPORTS: [("texts.HIDDEN", "texts.API_KEY")]},
    ),
    # What changes nothing.
    Edit("nothing", {}, SAME),
    Edit("a local variable is renamed", {ORDERS: [("priced = ", "rows = "), ("priced.select", "rows.select")]}, SAME),
    edit("a comment", ORDERS, "    priced =", "    # with prices\n    priced =", SAME),
    edit("a docstring", ORDERS, '"""One row per order."""', '"""One row per valid order."""', SAME),
    edit("a docstring is added", ORDERS, "def totals(orders):\n", 'def totals(orders):\n    """Totals."""\n', SAME),
    edit("a docstring of a helper", PRICES, '"""Without tax."""', '"""Net."""', SAME),
    edit("a docstring of a module", PRICES, '"""Prices."""', '"""All prices."""', SAME),
    edit(
        "formatting",
        PRICES,
        "    return ROUNDING.apply(amount / rate)",
        "    return ROUNDING.apply(\n        amount\n        / rate,\n    )",
        SAME,
    ),
    edit(
        "formatting of a condition",
        PRICES,
        "    for factor in factors:\n        amount = amount * factor",
        "    for factor in (\n        factors\n    ):\n\n        amount = (\n            amount * factor\n        )",
        SAME,
    ),
    edit(
        "types", PRICES, "def net(amount, country):", "def net(amount: F.Column, country: 'F.Column') -> object:", SAME
    ),
    edit("a type of a local variable", PRICES, "    rate = F.lit(1.0)", "    rate: object = F.lit(1.0)", SAME),
    edit(
        "an import that nobody uses",
        PRICES,
        "from functools import partial",
        "import decimal\nfrom functools import partial",
        SAME,
    ),
    edit(
        "the order of imports",
        PRICES,
        "from planned import rates\nfrom planned.marks import logged",
        "from planned.marks import logged\nfrom planned import rates",
        SAME,
    ),
    edit("a helper that nobody calls", PRICES, "return amount + 1", "return amount + 2", SAME),
    edit("a new helper", PRICES, "def unused(amount):", "def other():\n    pass\n\n\ndef unused(amount):", SAME),
    edit("a constant that nobody reads", RATES, "VAT = 0.19", "OTHER = 1\nVAT = 0.19", SAME),
    edit("the same value, written otherwise", RATES, "VAT = 0.19", "VAT = 19 / 100", SAME),
    Edit(
        "another alias of a module",
        {REPORTS: [("as texts", "as words"), ("{texts.", "{words."), ("texts.clean", "words.clean")]},
        SAME,
    ),
    edit(
        "names instead of a star", ORDERS, "from planned.prices import *", "from planned.prices import WAYS, net", SAME
    ),
    Edit(
        "a helper is moved into another file",
        {
            PRICES: [
                ("from planned import rates\n", "from planned import rates\nfrom planned.moved import gross\n"),
                (
                    GROSS,
                    "",
                ),
            ],
            "planned/moved.py": [
                (
                    "",
                    f"from pyspark.sql import functions as F\n\n\n{GROSS}",
                )
            ],
        },
        SAME,
    ),
    Edit(
        "two functions change places",
        {
            PRICES: [
                ("def unused(amount):\n    return amount + 1\n", ""),
                ("@logged\ndef net", "def unused(amount):\n    return amount + 1\n\n\n@logged\ndef net"),
            ]
        },
        SAME,
    ),
    edit("a comment of a column", SOURCES, "COMMENT 'when'", "COMMENT 'instant of the change'", SAME),
    edit(
        "a schedule",
        "config/etl/orders.yml",
        "default_limit",
        "schedule: {every: 86400, grace: 3600, max_age: 90000}\ndefault_limit",
        SAME,
    ),
    edit("how often a query is triggered", "config/streaming/views.yml", "window", "trigger: 9 seconds\nwindow", SAME),
    edit(
        "a property without a say in rows",
        "config/spark/spark-defaults.conf",
        "partitions 4",
        "partitions 8\nspark.executor.memory 3g",
        SAME,
    ),
    edit("a selection of all declared columns less", ORDERS, ".select(*TOTALS.names)", "", SAME),
    # The code of a function, and what it reaches.
    edit("a constant two modules away", RATES, "VAT = 0.19", "VAT = 0.16", ALL_ORDERS),
    edit(
        "a constant of another type",
        RATES,
        "VAT = 0.19",
        "from decimal import Decimal\nVAT = Decimal('0.19')",
        ALL_ORDERS,
    ),
    edit("a value that is changed while it is imported", RATES, '"IT"] = 0.22', '"IT"] = 0.21', ALL_ORDERS),
    edit(
        "a value that another module changes",
        ORDERS,
        "TOTALS = ",
        "from planned import rates\n\nrates.RATES.update(ES=0.21)\nTOTALS = ",
        ALL_ORDERS,
    ),
    edit("the order of a mapping", RATES, '{"DE": VAT, "FR": 0.2}', '{"FR": 0.2, "DE": VAT}', ALL_ORDERS),
    edit(
        "a decorator",
        "planned/marks.py",
        "return function(*arguments, **named)",
        "return function(*arguments, **named) * 2",
        ALL_ORDERS,
    ),
    edit("a decorator is removed", PRICES, "@logged\n", "", ALL_ORDERS),
    edit("an attribute of a class", PRICES, "DIGITS = 2", "DIGITS = 3", ALL_ORDERS),
    edit("a method", PRICES, "return F.round(value, self.DIGITS)", "return F.bround(value, self.DIGITS)", ALL_ORDERS),
    edit(
        "an attribute of an object",
        PRICES,
        "ROUNDING = Rounding()",
        "ROUNDING = Rounding()\nROUNDING.DIGITS = 2",
        EVERYTHING,
    ),
    edit(
        "a base class", PRICES, "class Rounding:", "class Base:\n    DIGITS = 9\n\n\nclass Rounding(Base):", ALL_ORDERS
    ),
    edit("a helper", PRICES, "1.0 + value", "1.0 - value", ALL_ORDERS),
    edit(
        "a branch of a helper",
        PRICES,
        "    return ROUNDING",
        "    if not rates.RATES:\n        return amount\n    return ROUNDING",
        ALL_ORDERS,
    ),
    edit(
        "another module takes a function's place",
        ORDERS,
        "TOTALS = ",
        "import planned.texts\n\nplanned.texts.HIDDEN = 'YY'\nTOTALS = ",
        EVERYTHING,
    ),
    edit("a default argument", PRICES, "digits=2", "digits=3", CENTS),
    edit("an argument of a partial", PRICES, "digits=0", "digits=1", CENTS),
    edit("a function in a mapping", PRICES, '{"cents": in_cents', '{"cents": net', CENTS),
    edit(
        "two functions in a mapping change places",
        PRICES,
        '"cents": in_cents, "plain":',
        '"plain": in_cents, "cents":',
        CENTS,
    ),
    edit("a default argument of a lambda", PRICES, "scale=1", "scale=2", CENTS),
    edit("what is done with star arguments", PRICES, "amount * factor", "amount / factor", CENTS),
    edit("a helper is another one", PRICES, "in_cents = partial(gross, digits=0)", "in_cents = net", CENTS),
    edit("SQL", REPORTS, "net > 0", "net >= 0", {"copies": ROWS}),
    edit("a value in SQL", TEXTS, 'HIDDEN = "XX"', 'HIDDEN = "YY"', {"names": ROWS}),
    edit("a UDF", TEXTS, "name.strip()", "name.lstrip()", {"names": ROWS}),
    edit("the type of a UDF", TEXTS, '@F.udf("string")', '@F.udf("binary")', {"names": ROWS}),
    edit("a UDF that SQL may name", TEXTS, "name.lower()", "name.upper()", EVERYTHING),
    Edit(
        "a variable of the environment that is read when a module is imported",
        {},
        {"names": ROWS},
        variables={"PLANNED_SUFFIX": "?"},
    ),
    Edit("what a function imports when it runs", {"planned/lazy.py": [("XX", "YY")]}, {"names": ROWS}, LAZY),
    Edit("the same by a relative name", {"planned/lazy.py": [("XX", "YY")]}, {"names": ROWS}, RELATIVE),
    Edit(
        "a module that is imported by a text, where any may be meant",
        {PRICES: [("amount + 1", "amount + 2")]},
        {"names": ROWS},
        BY_NAME,
    ),
    Edit("a function that is found by a text", {TEXTS: [("name.strip()", "name.rstrip()")]}, {"names": ROWS}, AS_VALUE),
    edit(
        "a value that a function of its own work reads", "planned/books.py", "LEAST = 5", "LEAST = 6", {"ledger": ROWS}
    ),
    # Columns.
    Edit(
        "a column is added by an aggregate",
        {
            ORDERS: [
                ("total decimal(22, 2)", "total decimal(22, 2), most decimal(12, 2)"),
                ('.alias("total")', '.alias("total"), F.max("net").alias("most")'),
            ]
        },
        {"totals": ADDED, "ledger": ROWS},
    ),
    Edit(
        "a column is added that readers use whole rows of",
        {
            ORDERS: [
                ("cents decimal(12, 0)", "cents decimal(12, 0), one int"),
                ('        "order_id",\n', '        F.lit(1).alias("one"),\n        "order_id",\n'),
            ]
        },
        {"orders": ADDED, **OF_CENTS},
    ),
    edit("a column is computed otherwise", ORDERS, 'F.sum("net")', 'F.max("net")', {"totals": ROWS, "ledger": ROWS}),
    edit(
        "a column that readers read is computed otherwise",
        ORDERS,
        'F.count("*")',
        "F.count_if(F.col('net') > 0)",
        OF_TOTALS,
    ),
    edit(
        "rows are chosen otherwise",
        ORDERS,
        'orders.groupBy("day", "country")',
        'orders.where("net > 1").groupBy("day", "country")',
        OF_TOTALS,
    ),
    Edit(
        "a column is added that makes several rows of one",
        {
            REPORTS: [
                ("name string", "name string, part string"),
                ('.alias("name")', '.alias("name"), F.explode(F.split("country", "-")).alias("part")'),
            ]
        },
        {"names": ROWS},
    ),
    edit(
        "a column is gone",
        ORDERS,
        ', cents decimal(12, 0)"',
        '"',
        {"orders": BREAKING, "copies": BREAKING, "countries": ROWS},
    ),
    edit("the type of a column", ORDERS, "cents decimal(12, 0)", "cents bigint", {"orders": BREAKING, **OF_CENTS}),
    edit(
        "a column must have a value",
        ORDERS,
        "net decimal(12, 2)",
        "net decimal(12, 2) NOT NULL",
        {"orders": BREAKING, "totals": ROWS, "ledger": ROWS, **OF_CENTS},
    ),
    edit(
        "the order of columns",
        ORDERS,
        "order_id string, country string, net",
        "country string, order_id string, net",
        ALL_ORDERS,
    ),
    edit("the key", ORDERS, '    key="order_id"', '    key=("order_id", "country")', {"orders": BREAKING, **OF_ORDERS}),
    edit(
        "the partitions",
        ORDERS,
        '    partition_by="day",\n    key',
        '    partition_by=("day", "country"),\n    key',
        {"orders": BREAKING, **OF_ORDERS},
    ),
    Edit(
        "a table has another name",
        {
            ORDERS: [("def totals", "def sums")],
            REPORTS: [("def best(totals):\n    return totals.", "def best(sums):\n    return sums.")],
            "planned/etl/ledger.py": [('"totals"', '"sums"')],
        },
        {"totals": "gone", "sums": "new", "best": ROWS, "ledger": ROWS},
    ),
    Edit(
        "a table is added",
        {
            REPORTS: [
                (
                    "@daily.state",
                    f"{DAYS}@daily.state",
                )
            ]
        },
        {"days": "new"},
    ),
    # The source.
    edit("the newest version of a row", SOURCES, 'newest="changed_at"', 'oldest="changed_at"', ALL_RAW),
    edit("a column of a source", SOURCES, "country string,", "country string, channel string,", ALL_RAW),
    edit("which files are read", SOURCES, "*.csv", "*.txt", ALL_RAW),
    edit(
        "a column that is delivered under another name",
        SOURCES,
        'newest="changed_at"',
        'newest="changed_at", columns={"country": "Land"}',
        ALL_RAW,
    ),
    edit(
        "rows that delete",
        REPORTS,
        'orders bigint", key="country")',
        'orders bigint", key="country", deleted="orders < 0")',
        {"countries": ROWS},
    ),
    edit(
        "which row is newer",
        REPORTS,
        'orders bigint", key="country")',
        'orders bigint", key="country", newest="orders")',
        {"countries": ROWS},
    ),
    edit(
        "a state that keeps all versions",
        REPORTS,
        '"country string, orders bigint", key="country")',
        '"country string, orders bigint, day date", key="country", newest="day", kind="scd2")',
        {"countries": BREAKING},
    ),
    edit("how files are read", SOURCES, 'sep=";"', 'sep="|"', ALL_RAW),
    edit("a column of the table of a source", ORDERS, "< 100", "< 200", {"raw_orders": ROWS}),
    # Expectations, configuration and topics.
    edit("an argument of an expectation", ORDERS, 'at_least("net", "0")', 'at_least("net", "1")', {"orders": CHECKED}),
    edit(
        "an expectation is added",
        ORDERS,
        'expect.at_least("net", "0")',
        'expect.at_least("net", "0"), expect.not_null("country")',
        {"orders": CHECKED},
    ),
    Edit(
        "an expectation is gone",
        {
            ORDERS: [('expect=[expect.at_least("net", "0")]', "expect=[]")],
            "config/etl/orders.yml": [("limits:\n  net.range: 0.1\n", "")],
        },
        {"orders": CHECKED},
    ),
    edit("an expectation that decides which raw rows are valid", ORDERS, '"0.01"', '"0.02"', ALL_RAW),
    edit("an expectation of all raw rows together", ORDERS, "sigmas=3", "sigmas=4", {"raw_orders": CHECKED}),
    edit("a value of the configuration that an expectation reads", "config/app.yml", "EUR", "USD", ALL_RAW),
    edit("a limit", "config/etl/orders.yml", "net.range: 0.1", "net.range: 0.2", {"orders": CHECKED}),
    edit(
        "the limit of all others",
        "config/etl/orders.yml",
        "default_limit: 0.02",
        "default_limit: 0.03",
        {"raw_orders": CHECKED},
    ),
    edit(
        "checks are switched off",
        "config/etl/orders.yml",
        "default_limit",
        "checks: false\ndefault_limit",
        {"raw_orders": CHECKED, "orders": CHECKED},
    ),
    edit("an option of a query", "config/streaming/views.yml", "5 minutes", "10 minutes", {"views": ROWS}),
    edit("the watermark of a query", VIEWS, "30 minutes", "20 minutes", {"views": ROWS}),
    edit(
        "repetitions are not left out",
        VIEWS,
        'watermark="30 minutes"',
        'watermark="30 minutes", once=False',
        {"views": ROWS},
    ),
    edit("a column of a topic", "planned/topics.py", "page string", "page string, user string", {"views": ROWS}),
    edit(
        "a property on which rows depend",
        "config/spark/spark-defaults.conf",
        "spark.sql.shuffle",
        "spark.sql.ansi.enabled false\nspark.sql.shuffle",
        EVERYTHING,
    ),
]


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Path]]:
    """Writes the project into a folder, with edits, and goes there; modules of another one are forgotten."""
    before = list(sys.path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(name: str, *edits: Mapping[str, Sequence[tuple[str, str]]]) -> Path:
        files = dict(FILES)
        for file, texts in (pair for each in edits for pair in each.items()):
            for old, new in texts:
                assert not old or files[file].count(old) >= 1, f"{file} has no {old!r}"
                files[file] = files[file].replace(old, new) if old else new
        for file, text in files.items():
            (tmp_path / name / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / file).write_text(text, encoding="utf-8")
        _forget(before)
        monkeypatch.chdir(tmp_path / name)
        monkeypatch.setenv("SPARK_APP_WAREHOUSE", str(tmp_path / "warehouse"))
        return tmp_path / "warehouse"

    yield write
    _forget(before)


def _forget(path: list[str]) -> None:
    sys.path[:] = path
    for name in [each for each in sys.modules if each.startswith("planned")]:
        del sys.modules[name]
    importlib.invalidate_caches()


def made() -> dict[str, str]:
    """What runs of the project in the current folder write into the commits of each table."""
    settings = load_settings()
    jobs = [each for package in ("etl", "streaming") for each in load_jobs(settings, package)]
    return {table: text for job in with_fingerprints(settings, jobs) for table, text in job.fingerprints.items()}


def commit(warehouse: Path) -> None:
    """Writes a commit of each table, as runs of the project in the current folder do."""
    for table, text in made().items():
        add_commit(warehouse / table, "WRITE", delta_log.metadata_of("run#1", text))


def add_commit(table: Path, operation: str, metadata: str | None = None) -> None:
    """Adds a commit to the log of a table."""
    log = table / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    info = {"timestamp": 1_700_000_000_000, "operation": operation}
    info |= {} if metadata is None else {"userMetadata": metadata}
    (log / f"{len(list(log.iterdir())):020d}.json").write_text(json.dumps({"commitInfo": info}), encoding="utf-8")


def planned() -> Plan:
    """The plan of the project in the current folder."""
    return of_project(load_settings())


def states(found: Plan) -> dict[str, str]:
    """The states of the tables that are not unchanged."""
    return {each.table: each.state for each in found.tables if each.state != "unchanged"}


@pytest.mark.parametrize("each", EDITS, ids=lambda each: each.name)
def test_an_edit_has_its_effect_and_no_other(
    each: Edit, written: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The states were written down before they were seen."""
    commit(written("before", each.base))
    for name, value in each.variables.items():
        monkeypatch.setenv(name, value)
    written("after", each.base, each.files)
    found = planned()
    assert states(found) == dict(each.states), [(one.table, one.reasons, one.columns) for one in found.tables]


def commits(text: str, new: str, warehouse: Path, *tables: str) -> None:
    """Writes commits that say something else than the project does."""
    for table, made_as in made().items():
        changed = made_as.replace(text, new) if table in tables or not tables else made_as
        assert tables or changed != made_as
        add_commit(warehouse / table, "WRITE", delta_log.metadata_of("run#1", changed))


def test_another_version_of_spark_is_said_once_of_all_tables(written: Callable[..., Path]) -> None:
    """No table is called unchanged then."""
    commits('"Spark":"4', '"Spark":"3', written("shop"))
    found = planned()
    assert states(found) == EVERYTHING
    assert [text.partition(".")[0] for text in found.everywhere] == ["Spark: 3"]
    assert not any(each.reasons for each in found.tables)


def test_another_version_of_python_compares_no_functions(written: Callable[..., Path]) -> None:
    """Their code has other instructions; what is declared is compared."""
    warehouse = written("before")
    commits('"Python":"3', '"Python":"2', warehouse)
    written("after", {ORDERS: [("cents decimal(12, 0)", "cents bigint")], RATES: [("0.19", "0.16")]})
    found = planned()
    assert states(found) == {**EVERYTHING, "orders": BREAKING}
    [orders] = [each for each in found.tables if each.table == "orders"]
    assert orders.reasons == ["column cents: decimal(12,0) → bigint"]


def test_another_version_of_a_package_counts_for_the_tables_that_use_it(written: Callable[..., Path]) -> None:
    """A package that is imported, and not used by the functions of a table, does not."""
    base = {REPORTS: [("import planned.texts as texts", "import numpy\n\nimport planned.texts as texts"),
                      ('"orders > 1"', 'f"orders > {numpy.int64(1)}"')],
            TEXTS: [("    spark.udf.register", "    spark.note")]}  # fmt: skip
    commits('"numpy":"', '"numpy":"0.', written("shop", base), "best")
    found = planned()
    assert states(found) == {"best": ROWS}
    assert [each.reasons[0].partition(":")[0] for each in found.tables if each.table == "best"] == ["numpy"]


def test_a_table_that_was_never_written_is_new(written: Callable[..., Path]) -> None:
    """One that was only created, too."""
    warehouse = written("shop")
    commit(warehouse)
    (warehouse / "best" / "_delta_log" / f"{0:020d}.json").unlink()
    add_commit(warehouse / "best", "WRITE", delta_log.NO_ROWS)
    assert states(planned()) == {"best": "new"}


@pytest.mark.parametrize("operation", ["OPTIMIZE", "VACUUM END", "DELETE", "SET TBLPROPERTIES"])
def test_commits_that_make_no_rows_are_looked_past(written: Callable[..., Path], operation: str) -> None:
    """As after `spark-app tables --optimize`, or when rows of a customer were deleted."""
    warehouse = written("shop")
    commit(warehouse)
    add_commit(warehouse / "totals", operation)
    assert states(planned()) == {}


@pytest.mark.parametrize("operation", ["WRITE", "MERGE", "UPDATE", "RESTORE"])
def test_rows_of_whom_nobody_knows_are_never_called_unchanged(written: Callable[..., Path], operation: str) -> None:
    """As after a correction by hand, or a restored version."""
    warehouse = written("shop")
    commit(warehouse)
    add_commit(warehouse / "totals", operation)
    [totals] = [each for each in planned().tables if each.table == "totals"]
    said = f"nothing says how it was built: its version 1 ({operation}) does not say it"
    assert (totals.state, totals.reasons, totals.version) == ("unknown", [said], 1)


def test_what_was_written_before_what_it_reads_was_written_otherwise_follows_that(
    written: Callable[..., Path],
) -> None:
    """The table that it reads is unchanged by now."""
    warehouse = written("before")
    commit(warehouse)
    written("after", {RATES: [("VAT = 0.19", "VAT = 0.16")]})
    add_commit(warehouse / "orders", "WRITE", delta_log.metadata_of("run#2", made()["orders"]))
    assert states(planned()) == OF_ORDERS


VISITS: Final = """SEEN = Topic("visits", schema="view_id string, page string, timestamp timestamp", key="view_id")
PAGE_VIEWS = """
QUERY: Final = """from spark_app import stream


@stream.topic(schema="view_id string, page string, timestamp timestamp", key="view_id")
def visits(page_views):
    return page_views.where("page > 'a'")
"""


def test_a_query_follows_one_whose_topic_it_reads(written: Callable[..., Path]) -> None:
    """A topic has no commit that would say how its values were made."""
    base = {
        "planned/topics.py": [
            ("PAGE_VIEWS = ", VISITS),
            ("PAGE_VIEWS = ", VISITS.replace("visits", "seen").replace("SEEN", "VISITS")),
        ],
        "planned/streaming/visits.py": [("", QUERY)],
        "planned/streaming/seen.py": [("", QUERY.replace("page_views", "visits").replace("def visits", "def seen"))],
        VIEWS: [("page_views, *", "seen, *"), ("page_views.", "seen.")],
    }
    commit(written("before", base))
    written("after", base, {"planned/streaming/visits.py": [("page > 'a'", "page > 'b'")]})
    found = planned()
    assert states(found) == {"views": ROWS}
    assert next(each.reasons for each in found.tables if each.table == "views") == ["follows seen"]


def test_models_and_tables_of_the_library_are_named_and_not_compared(written: Callable[..., Path]) -> None:
    """No function of the project makes their rows."""
    letters = "from planned.topics import *\nfrom spark_app import stream\n\nOLD = stream.dead_letters([PAGE_VIEWS])\n"
    written("shop", {"planned/streaming/letters.py": [("", letters)]})
    assert planned().not_compared == ["dead_letters", "dead_letter_replays"]


def test_a_function_that_nobody_can_look_at_leaves_the_others_compared(written: Callable[..., Path]) -> None:
    """Its run does not fail, and its commits say nothing."""
    nested = "\n\nKNOT = []\nKNOT.append(KNOT)\n"
    base = {REPORTS: [("import daily\n", f"import daily{nested}"), ('"orders > 1"', 'str(KNOT)[:0] + "orders > 1"')]}
    commit(written("shop", base))
    found = {each.table: each for each in planned().tables}
    assert {name for name, each in found.items() if each.state != "unchanged"} == {"best"}
    assert found["best"].reasons[0].startswith("what makes it cannot be told: RecursionError: ")
