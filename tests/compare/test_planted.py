"""Runs with one thing planted, now: on a calm machine it is what they are explained by first."""

from pathlib import Path

import pytest

from app.eventlog import reading
from app.eventlog.comparison import summary
from app.eventlog.comparison.compare import compare
from app.eventlog.comparison.record import Summary
from tests.compare.cases import EQUAL, PLANTED, Planted, Run, assert_first
from tests.compare.runs import make_tables, run


class Runs:
    """The records of runs, each made when it is first asked for; Spark's files are warm by then."""

    def __init__(self, folder: Path) -> None:
        """Makes the tables."""
        make_tables(folder)
        run(folder, Run("warm-up"))
        self._folder = folder
        self._made: dict[str, Summary] = {}

    def of(self, wanted: Run) -> Summary:
        """The record of a run."""
        if wanted.name not in self._made:
            self._made[wanted.name] = summary.of(reading.read(run(self._folder, wanted)))
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
