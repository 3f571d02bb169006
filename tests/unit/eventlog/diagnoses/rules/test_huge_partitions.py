import pytest

from tests.unit.eventlog.diagnoses.cases import GIB, found, shuffle, stage, task


@pytest.mark.parametrize(
    ("metrics", "kind"),
    [
        ({"Input Metrics": {"Bytes Read": 6 * GIB}}, "input"),
        ({"Output Metrics": {"Bytes Written": 6 * GIB}}, "output"),
        (shuffle(6 * GIB), "shuffle read"),
        ({"Shuffle Write Metrics": {"Shuffle Bytes Written": 6 * GIB}}, "shuffle write"),
    ],
)
def test_a_huge_partition_says_of_what(metrics: dict[str, int], kind: str) -> None:
    """Whatever a task read or wrote, one of 6 GiB is huge."""
    finding = found(stage([task(0, 2, **metrics), task(1, 1)], seconds=2))["huge_partitions"]
    assert f"6.0 GiB of {kind}" in finding.text
    assert finding.numbers["largest_bytes"] == 6 * GIB
