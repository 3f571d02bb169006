"""What a recorded application read and wrote has one name each, whichever way it did: Delta, files, JDBC, Kafka."""

from typing import Final

import pytest

from spark_app.annexes.lineage.datasets import Dataset
from spark_app.annexes.lineage.runs import LineageRun, lineage_runs
from spark_app.eventlog import reader
from spark_app.eventlog.model.application import Application
from tests.eventlogs.record_sources import BROKER, RECORDED
from tests.eventlogs.sources import CASES

PEOPLE: Final = "file /shop/people"
CLIENTS: Final = "file /shop/warehouse/clients = default.clients"
COPIES: Final = "file /shop/warehouse/copies = default.copies"
SUMS: Final = "file /shop/warehouse/sums = default.sums"
SAVE: Final = "shop.execute_save_into_data_source_command"
INSERT: Final = "shop.execute_insert_into_hadoop_fs_relation_command"
Run = tuple[str, list[str], list[str], int | None]
"""The job, what it read, what it wrote, and how many rows."""
RUNS: Final[dict[str, list[Run]]] = {
    "path append": [(f"{SAVE}.people", [], [PEOPLE], None)],
    "path overwrite": [(f"{SAVE}.people", [], [PEOPLE], None)],
    "path merge": [("shop.execute_merge_into_command.people", [PEOPLE], [PEOPLE], 10)],
    "path merge of a table": [("shop.execute_merge_into_command.people", [PEOPLE, CLIENTS], [PEOPLE], 9)],
    "path update": [("shop.execute_update_command.people", [PEOPLE], [PEOPLE], 1)],
    "path delete": [("shop.execute_delete_command.people", [PEOPLE], [PEOPLE], None)],
    "path delete all": [("shop.execute_delete_command.people", [], [PEOPLE], None)],
    "path read": [("shop.scan_parquet", [PEOPLE], [], None)],
    "catalog create": [],
    "catalog insert": [("shop.append_data_exec_v1.default.clients", [], [CLIENTS], None)],
    "catalog append": [("shop.append_data_exec_v1.default.clients", [], [CLIENTS], None)],
    "catalog overwrite": [("shop.atomic_replace_table_as_select.default.clients", [], [CLIENTS], None)],
    "catalog merge": [("shop.execute_merge_into_command.default.clients", [CLIENTS], [CLIENTS], 10)],
    "catalog update": [("shop.execute_update_command.default.clients", [CLIENTS], [CLIENTS], 1)],
    "catalog delete": [("shop.execute_delete_command.default.clients", [CLIENTS], [CLIENTS], None)],
    "catalog read": [("shop.scan_parquet_spark", [CLIENTS], [], None)],
    "catalog copy": [("shop.atomic_create_table_as_select.default.copies", [CLIENTS], [COPIES], None)],
    "copy read": [("shop.scan_parquet_spark", [COPIES], [], None)],
    "parquet write": [(f"{INSERT}.parquet", [], ["file /shop/parquet"], 10)],
    "csv write": [(f"{INSERT}.csv", [], ["file /shop/csv"], 10)],
    "json write": [(f"{INSERT}.json", [], ["file /shop/json"], 10)],
    "parquet read": [("shop.scan_parquet", ["file /shop/parquet"], [], None)],
    "csv read": [
        ("shop.collect_limit", ["file /shop/csv"], [], None),
        ("shop.deserialize_to_object", ["file /shop/csv"], [], None),
        ("shop.scan_csv", ["file /shop/csv"], [], None),
    ],
    "json read": [("shop.scan_json", ["file /shop/json"], [], None)],
    "parquet table": [("shop.execute_save_as_v1_table_command.default.sums", [], [SUMS], 10)],
    "parquet table insert": [(f"{INSERT}.default.sums", [], [SUMS], 10)],
    "jdbc write": [],
    "jdbc append": [],
    "jdbc read": [],
    "jdbc query": [],
    "jdbc copy": [(f"{INSERT}.from-jdbc", [], ["file /shop/from-jdbc"], 20)],
    "kafka write": [(f"{SAVE}.clicks", [], [f"kafka://{BROKER} clicks"], None)],
    "kafka read": [],
    "kafka copy": [(f"{INSERT}.from-kafka", [], ["file /shop/from-kafka"], 10)],
    "kafka stream": [],
}
"""Spark hides the URL of a database, and does not log the brokers of a topic that is read."""


@pytest.fixture(scope="module")
def app() -> Application:
    """The application that ran all cases."""
    return reader.read(RECORDED).app


def named(dataset: Dataset) -> str:
    """Its namespace and name, and beside them its name in the catalog."""
    return f"{dataset.namespace} {dataset.name}{f' = {dataset.table}' if dataset.table else ''}"


def shown(run: LineageRun) -> Run:
    """A run as the table of expected ones has it."""
    return run.job.name, sorted(map(named, run.inputs)), sorted(map(named, run.outputs)), run.rows


@pytest.mark.parametrize("case", CASES)
def test_each_way_to_read_or_write_names_what_it_read_and_wrote(app: Application, case: str) -> None:
    """A table of the catalog is known by its path in all queries; rows that a merge copies are not written."""
    began = {query.started for query in app.queries.values() if query.description == case}
    runs = [shown(run) for run in lineage_runs(app) if run.kind == "QUERY" and run.started in began]
    assert runs == RUNS[case]


def test_no_name_is_another_one_at_the_next_run(app: Application) -> None:
    """Nor is any dataset in the namespace of the jobs, which would be a second name of something."""
    runs = lineage_runs(app)
    datasets = [each for run in runs for each in (*run.inputs, *run.outputs)]
    names = [run.job.name for run in runs] + [each.name for each in datasets]
    assert not [name for name in names if "part-0" in name]
    assert {each.namespace for each in datasets} == {"file", f"kafka://{BROKER}"}
