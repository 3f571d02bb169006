from pathlib import Path

from msgspec.structs import replace

from spark_app.annexes.tune.forecasts import add, judge, load
from spark_app.annexes.tune.history import Interval, Proposal
from spark_app.eventlog.comparison.profile import RunProfile
from tests.unit.eventlog.made import Run

PARTITIONS = "spark.sql.shuffle.partitions"


def proposal(value: str = "4", low: float = 10, high: float = 20) -> Proposal:
    """Partitions that rest on a shuffle of so many bytes."""
    return Proposal(PARTITIONS, value, None, "small", "largest shuffle", Interval(low, high))


def run(shuffled: int | None, *, number: str = "app-2", value: str = "4", at: int = 2000) -> RunProfile:
    """A run with the setting."""
    profile = Run(1000, [], id=number, at=at, settings={PARTITIONS: value}).summary
    return replace(profile, largest_shuffle_bytes=shuffled)


def test_the_first_run_with_the_setting_decides(tmp_path: Path) -> None:
    """A second one changes nothing, and may be asked again."""
    add(tmp_path, "shop", [proposal()], made_at=1000)
    own, decided = judge(tmp_path, run(15))
    assert [(each.run, each.measured, each.came_true) for each in own] == [("app-2", 15, True)]
    assert judge(tmp_path, run(99, number="app-3"))[0] == []
    assert judge(tmp_path, run(15)) == (own, decided)


def test_a_figure_beyond_the_bounds_did_not_come_true(tmp_path: Path) -> None:
    """Below or above."""
    for shuffled in (9, 21):
        add(tmp_path, "shop", [proposal()], made_at=1000)
        judge(tmp_path, run(shuffled, number=f"app-{shuffled}"))
    assert [each.came_true for each in load(tmp_path, "shop")] == [False, False]


def test_a_run_without_the_setting_or_before_decides_nothing(tmp_path: Path) -> None:
    """Nor does one whose log lacks the figure."""
    add(tmp_path, "shop", [proposal()], made_at=1000)
    for other in (run(15, value="200"), run(15, at=500), run(None)):
        assert judge(tmp_path, other) == ([], [])


def test_a_new_proposal_replaces_an_open_one(tmp_path: Path) -> None:
    """One that a run has decided stays in the share."""
    add(tmp_path, "shop", [proposal("8")], made_at=1000)
    add(tmp_path, "shop", [proposal("4")], made_at=1000)
    judge(tmp_path, run(15))
    add(tmp_path, "shop", [proposal("2")], made_at=3000)
    assert [(each.value, each.run) for each in load(tmp_path, "shop")] == [("4", "app-2"), ("2", None)]


def test_a_damaged_file_is_no_forecast(tmp_path: Path) -> None:
    """It is replaced."""
    add(tmp_path, "shop", [proposal()], made_at=1000)
    (file,) = tmp_path.iterdir()
    file.write_text("damaged", encoding="utf-8")
    assert load(tmp_path, "shop") == []
