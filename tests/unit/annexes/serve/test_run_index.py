"""The index of runs: shared, damaged, not writable, and how much memory it takes."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from spark_app.annexes.serve import run_index
from spark_app.annexes.serve.run_files import NAME, Kind, LocalRunFiles
from spark_app.annexes.serve.run_index import RunIndex
from spark_app.annexes.serve.runs import Chosen, Runs
from tests.unit.annexes.serve.test_runs import prices, profile, record

MANY = 100_000
GENERATED = """
WITH RECURSIVE number(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM number WHERE n + 1 < ?)
INSERT INTO run
SELECT 'app-' || n, 'app-' || n, 'job ' || (n % 50), '', iif(n % 7, 'succeeded', 'failed'), n * 60000.0, 1000.0,
    3600000.0, 3600000.0, 'job/' || n || '.json', json_object('team', 'team-' || (n % 1000)),
    json_object('user-' || (n % 100), 3600000.0), '[]',
    'job ' || (n % 50) || ' team-' || (n % 1000)
FROM number
"""


@dataclass(frozen=True, slots=True)
class ReadFiles(LocalRunFiles):
    """Local files, whose run profiles and records are read by a function."""

    read: Callable[[Path], bytes] = Path.read_bytes

    def content(self, kind: Kind, path: str) -> bytes:
        """The content of a file."""
        return self.read({"profile": self.profiles, "record": self.runs, "report": self.reports}[kind] / path)


def files_of(home: Path, read: Callable[[Path], bytes] = Path.read_bytes) -> ReadFiles:
    """The files of a home folder."""
    return ReadFiles(home / "reports" / "records", home / "runs", home / "reports", read)


def index_of(home: Path, read: Callable[[Path], bytes] = Path.read_bytes) -> RunIndex:
    """The index of a home folder."""
    return RunIndex(files_of(home, read))


def listed(index: RunIndex) -> list[str]:
    """The ids in an index, the oldest first."""
    with index.connected() as connection:
        return [run for (run,) in connection.execute("SELECT id FROM run ORDER BY started, id")]


class Counted(Runs):
    """Runs that count how many rows are fetched at once."""

    most = 0

    def _rows(self, query: str, *parameters: object) -> list[Any]:
        rows = super()._rows(query, *parameters)
        self.most = max(self.most, len(rows))
        return rows


def test_no_more_rows_are_fetched_than_a_page_shows(tmp_path: Path) -> None:
    """Of 100,000 runs: of the list, a search, the costs and the names."""
    with index_of(tmp_path).connected() as connection:
        connection.execute(GENERATED, (MANY,))
    runs = Counted(files_of(tmp_path))
    assert runs.count(Chosen()) == MANY
    assert len(runs.newest_first(Chosen("job 7"), most=200)) == 200
    assert [run.id for run in runs.newest_first(Chosen(), most=1, skipped=MANY - 1)] == ["app-0"]
    costs = runs.groups(Chosen(), "label.team", prices(core_hour=1), most=50)
    assert (len(costs), costs[0].runs, costs[0].price, costs[0].share) == (50, 100, Decimal(100), 0.001)
    assert len(runs.names(most=10)) == 10
    assert runs.most == 200


def test_files_are_committed_some_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Meanwhile, what was read before is listed."""
    monkeypatch.setattr(run_index, "FILES_PER_COMMIT", 50)
    listed_after: list[int] = []

    def read(file: Path) -> bytes:
        listed_after.append(len(listed(index)))
        return file.read_bytes()

    for each in range(120):
        profile(tmp_path, each)
    index = index_of(tmp_path, read)
    index.refresh()
    assert listed_after == [0] * 50 + [50] * 50 + [100] * 20


def test_two_processes_share_an_index(tmp_path: Path) -> None:
    """What one has read, the other does not read again; what one is writing, the other waits for."""
    read: list[Path] = []

    def counted(file: Path) -> bytes:
        read.append(file)
        return file.read_bytes()

    one, other = index_of(tmp_path, counted), index_of(tmp_path, counted)
    profile(tmp_path, 1)
    one.refresh()
    record(tmp_path, "run-1", application_id=None)
    other.refresh()
    one.refresh()
    assert [file.name for file in read] == ["1.json", "run.json"]
    assert listed(one) == listed(other) == ["app-1", "run-1"]


@pytest.mark.parametrize("damage", [b"no database" * 1000, b""])
def test_a_damaged_index_is_made_anew(tmp_path: Path, damage: bytes) -> None:
    """It is a cache: also a deleted one."""
    profile(tmp_path, 1)
    index = index_of(tmp_path)
    index.refresh()
    (tmp_path / "reports" / "records" / NAME).write_bytes(damage)
    index.refresh()
    assert listed(index) == ["app-1"]


def test_an_index_of_another_version_is_made_anew(tmp_path: Path) -> None:
    """Its tables may be others."""
    profile(tmp_path, 1)
    index = index_of(tmp_path)
    index.refresh()
    with index.connected() as connection:
        connection.execute("DROP TABLE run")
        connection.execute("CREATE TABLE run (id)")
        connection.execute("PRAGMA user_version = 99")
    index.refresh()
    assert listed(index) == ["app-1"]


def test_a_folder_that_cannot_be_written_is_listed(tmp_path: Path) -> None:
    """The index is a temporary file: here, since a file is where the folder should be."""
    record(tmp_path, "run-1", application_id=None)
    (tmp_path / "reports").write_text("no folder")
    index = index_of(tmp_path)
    index.refresh()
    assert listed(index) == ["run-1"]


def test_a_file_that_goes_while_it_is_read_is_looked_for_again(tmp_path: Path) -> None:
    """It is in the index as soon as it can be read."""
    troubles = [OSError()]

    def read(file: Path) -> bytes:
        if troubles:
            raise troubles.pop()
        return file.read_bytes()

    profile(tmp_path, 1)
    index = index_of(tmp_path, read)
    index.refresh()
    assert listed(index) == []
    index.refresh()
    assert listed(index) == ["app-1"]
