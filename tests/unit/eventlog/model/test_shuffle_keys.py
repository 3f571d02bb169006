from pathlib import Path

import pytest

from spark_app.eventlog import reader
from spark_app.eventlog.model.shuffle_keys import KeyColumn, ShuffleKey, UnknownKeyError, exchanges_of, key_of
from spark_app.eventlog.parse.events import SqlPlan

TESTS = Path(__file__).parents[3]
FILES = {"Format": "Parquet", "Location": "InMemoryFileIndex(2 paths)[file:/data/a, file:/data/b]", "DataFilters": "[]"}


def scan(output: str = "sale#0L,shop#2L", **metadata: str) -> SqlPlan:
    """A scan of Parquet files."""
    return SqlPlan("Scan parquet ", f"FileScan parquet [{output}] Batched: true", metadata={**FILES, **metadata})


def exchange(key: str, *below: SqlPlan) -> SqlPlan:
    """A shuffle into eight partitions; each operator reads from the next."""
    child = below[-1]
    for operator in reversed(below[:-1]):
        child = SqlPlan(operator.name, operator.text, [child])
    return SqlPlan("Exchange", f"Exchange hashpartitioning({key}, 8), ENSURE_REQUIREMENTS, [plan_id=7]", [child])


def test_a_recorded_stage_names_the_key_of_its_shuffle() -> None:
    """By the id of the operator that its RDD has; other stages of the query have read none by a key."""
    app = reader.read(TESTS / "compare/recorded/hot-key.zst").app
    (found,) = exchanges_of(app.queries[1], app.stages[8, 0])
    key = key_of(found)
    (folder,) = key.paths
    assert folder.endswith("/hot_sales")
    assert key == ShuffleKey((KeyColumn("shop", is_never_null=False),), 8, (folder,), "Parquet", ())
    others = [stage for stage in app.stages_of(app.queries[1]) if stage.info.id != 8]
    assert others
    assert not any(exchanges_of(app.queries[1], stage) for stage in others)


def test_a_stage_that_counted_the_records_of_a_shuffle_has_read_it() -> None:
    """The RDDs of logs before Spark 4 have no id of an operator."""
    app = reader.read(TESTS / "eventlogs/diagnoses/stages.zst").app
    for stage in app.stages.values():
        stage.info.rdds.clear()
    queries = [(app.query_of(app.job_of(stage)), stage) for stage in app.stages.values()]
    read = [stage for query, stage in queries if query and exchanges_of(query, stage)]
    assert [stage.info.id for stage in read] == [5, 7]


@pytest.mark.parametrize(
    ("key", "below", "columns", "between"),
    [
        ("shop#2L", [scan()], ["shop"], ()),
        ("sale#0L, shop#2L", [scan()], ["sale", "shop"], ()),
        ("place#9L", [SqlPlan("Project", "Project [shop#2L AS place#9L, sale#0L]"), scan()], ["shop"], ()),
        ("shop#2L", [SqlPlan("Filter", "Filter (sale#0L > 3)"), scan()], ["shop"], ("Filter",)),
        ("shop#2L", [SqlPlan("HashAggregate", "HashAggregate(keys=[shop#2L])"), scan(DataFilters="[(sale#0L > 3)]")],
         ["shop"], ("Filter", "HashAggregate")),
    ],
)  # fmt: skip
def test_the_key_is_the_column_of_the_files(
    key: str, below: list[SqlPlan], columns: list[str], between: tuple[str, ...]
) -> None:
    """Also under another name; what changes the rows on the way is listed from the files on."""
    found = key_of(exchange(key, *below))
    assert [column.name for column in found.columns] == columns
    assert (found.partitions, found.paths, found.between) == (8, ("file:/data/a", "file:/data/b"), between)


@pytest.mark.parametrize("below", [
    [SqlPlan("Filter", "Filter isnotnull(shop#2L)"), scan()],
    [scan(DataFilters="[isnotnull(shop#2L)]")],
])  # fmt: skip
def test_rows_without_a_value_are_filtered_out_before_a_join(below: list[SqlPlan]) -> None:
    """They are no part of the shuffle, however many the files have."""
    assert key_of(exchange("shop#2L", *below)).columns == (KeyColumn("shop", is_never_null=True),)


@pytest.mark.parametrize(
    ("key", "below", "why"),
    [
        ("coalesce(shop#2L, 0)", [scan()], "it is shuffled by coalesce(shop#2L, 0), which is no column of files"),
        ("count#5L", [scan()], "it is shuffled by count, which no scan of files"),
        ("place#9L", [SqlPlan("Project", "Project [(shop#2L + 1) AS place#9L]"), scan()], "shuffled by place"),
        ("id#0L", [SqlPlan("Range", "Range (0, 100, step=1)")], "shuffled by id"),
    ],
)
def test_a_computed_key_is_unknown(key: str, below: list[SqlPlan], why: str) -> None:
    """Its values are in no file."""
    with pytest.raises(UnknownKeyError) as raised:
        key_of(exchange(key, *below))
    assert why in str(raised.value)
