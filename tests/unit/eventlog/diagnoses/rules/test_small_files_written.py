from tests.unit.eventlog.diagnoses.plans import MIB, application, found, node, ran


def test_files_written_are_those_that_spark_has_counted() -> None:
    """However short the query was: whoever reads them pays."""
    command = node("Execute InsertIntoHadoopFsRelationCommand", number_of_written_files=500, written_output=500 * MIB)
    (finding,) = found(application(ran(1, command, ms=100)), "small_files_written")
    assert finding.text == "Query 1 (Query 1): writes 500 files of 1.0 MiB on average"
    assert finding.cost_ms is None


def test_small_files_of_many_queries_are_counted_together() -> None:
    """24 files of a batch are nobody's problem; those of five batches to the same folder are 120."""
    text = "Execute InsertIntoHadoopFsRelationCommand file:/out, false, Parquet"
    command = node("Execute InsertIntoHadoopFsRelationCommand", text=text, number_of_written_files=24, written_output=9)
    (finding,) = found(application(*(ran(number, command) for number in range(5))), "small_files_written")
    assert finding.numbers["files"] == 120
    assert "writes 24 files of 0 B on average to file:/out; with 4 more places" in finding.text
    assert not found(application(*(ran(number, command) for number in range(4))), "small_files_written")


def test_each_task_that_wrote_has_left_a_file_at_least() -> None:
    """Delta does not count in the plan: 150 tasks have written, and one has not."""
    (finding,) = found(application(ran(1, node("Exchange"), tasks=150)), "small_files_written")
    assert finding.text == "Query 1 (Query 1): writes at least 150 files of at most 1.0 MiB on average"
    assert not found(application(ran(1, node("Exchange"), tasks=100)), "small_files_written")
