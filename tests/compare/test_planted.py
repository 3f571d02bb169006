"""Runs with one thing planted, now: on a calm machine it is what they are explained by first."""

from pathlib import Path

import pytest

from spark_app.eventlog import reader
from spark_app.eventlog.comparison import profiling
from spark_app.eventlog.comparison.compare import compare
from spark_app.eventlog.comparison.profile import RunProfile
from tests.compare.cases import (
    EQUAL,
    IN_ONE_PROCESS,
    PLANTED,
    Planted,
    Run,
    assert_first,
    assert_other_join_is_noise,
)
from tests.compare.runs import make_tables, run


class Runs:
    """The records of runs, each made when it is first asked for; Spark's files are warm by then."""

    def __init__(self, folder: Path) -> None:
        """Makes the tables."""
        make_tables(folder)
        run(folder, Run("first"))
        self._folder = folder
        self._made: dict[str, RunProfile] = {}

    def of(self, wanted: Run) -> RunProfile:
        """The record of a run."""
        if wanted.name not in self._made:
            (log,) = run(self._folder, wanted)
            self._made[wanted.name] = profiling.run_profile(reader.read(log))
        return self._made[wanted.name]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """The runs of this module."""
    return Runs(tmp_path_factory.mktemp("planted"))


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.run.name)
def test_what_was_planted_is_ranked_first(planted: Planted, runs: Runs) -> None:
    """One thing is out of order: it is what explains most of the difference, with its setting if it is one."""
    before = [runs.of(one) for one in planted.before]
    assert_first(compare(before, runs.of(planted.run)), planted)


def test_equal_runs_have_no_cause(runs: Runs) -> None:
    """Nothing is out of order, nothing is found."""
    *before, now = (runs.of(one) for one in EQUAL)
    compared = compare(before, now)
    assert compared.causes == [], compared.sentences


def test_another_join_is_named_though_the_time_is_the_same(tmp_path: Path) -> None:
    """The table of what changed has it."""
    make_tables(tmp_path)
    _, before, now = (profiling.run_profile(reader.read(log)) for log in run(tmp_path, *IN_ONE_PROCESS))
    assert_other_join_is_noise(compare(before, now))
