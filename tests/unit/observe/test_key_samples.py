from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from spark_app.errors import MachineError
from spark_app.observe import key_samples
from spark_app.observe.key_samples import NoSampleError, sample


def written(file: Path, **columns: list[Any]) -> Path:
    """A Parquet file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.table(columns), file, row_group_size=1000)
    return file


def test_all_rows_of_small_files_are_counted(tmp_path: Path) -> None:
    """The key that was planted, in its exact share."""
    for number in range(3):
        written(tmp_path / f"part-{number}.parquet", country=["DE"] * 63 + [f"c{each}" for each in range(37)])
    found = sample([tmp_path], ["country"])
    assert (found.value, found.count, found.rows, found.values) == (("DE",), 189, 300, 38)
    assert found.is_whole


def test_of_large_files_a_bounded_part_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows at random positions: a pattern in their order, or sorted rows, change no share by much."""
    monkeypatch.setattr(key_samples, "MAX_ROWS", 1000)
    monkeypatch.setattr(key_samples, "MAX_FILES", 5)
    for number in range(10):
        keys = sorted(0 if row % 10 < 7 else row for row in range(2000))
        written(tmp_path / f"part-{number}.parquet", key=keys)
    found = sample([tmp_path], ["key"])
    assert found.value == (0,)
    assert found.rows == 1000
    assert found.count / found.rows == pytest.approx(0.7, abs=0.05)
    assert not found.is_whole


def test_a_key_may_be_of_several_columns_and_of_the_path(tmp_path: Path) -> None:
    """As Spark writes partitions; the column may be in the files, too."""
    written(tmp_path / "day=2026-01-01" / "a.parquet", shop=[1, 2, 3])
    written(tmp_path / "day=2026-01-02" / "a.parquet", shop=[4, 4, 4], day=[date(2026, 1, 2)] * 3)
    found = sample([tmp_path], ["day", "shop"])
    assert (found.value, found.count, found.rows) == (("2026-01-02", 4), 3, 6)


def test_rows_that_a_filter_drops_do_not_count(tmp_path: Path) -> None:
    """Those without a value."""
    file = written(tmp_path / "a.parquet", shop=[None, None, None, 1, 1, 2])
    assert sample([file], ["shop"]).value == (None,)
    found = sample([file], ["shop"], ["shop"])
    assert (found.value, found.count, found.rows) == ((1,), 2, 3)


def test_a_delta_table_has_the_files_of_its_newest_version(tmp_path: Path) -> None:
    """Not those that a commit has removed, which are still in its folder; paths are encoded as in a URL."""
    written(tmp_path / "old.parquet", shop=[1] * 9)
    written(tmp_path / "day=2026-01-01 00%3A00" / "new.parquet", shop=[2, 2, 3])
    log = tmp_path / "_delta_log"
    log.mkdir()
    add = '{"add": {"path": "%s", "partitionValues": {}}}'
    (log / f"{0:020}.json").write_text(add % "old.parquet")
    commit = [add % "day=2026-01-01%2000%253A00/new.parquet", '{"remove": {"path": "old.parquet"}}']
    (log / f"{1:020}.json").write_text("\n".join(commit))
    found = sample([tmp_path], ["shop"])
    assert (found.value, found.count, found.rows) == ((2,), 2, 3)


@pytest.mark.parametrize(
    ("path", "column", "why"),
    [
        ("gone", "shop", "its files are gone"),
        ("sales", "place", "its files have no column place"),
        ("empty", "shop", "its folder has no Parquet files"),
        ("damaged", "shop", "its files cannot be read (ArrowInvalid)"),
        ("delta", "shop", "the log of its Delta table does not say which rows it has now"),
        ("nulls", "shop", "no sampled row has a value of the key"),
    ],
)
def test_what_cannot_be_sampled_says_why(path: str, column: str, why: str, tmp_path: Path) -> None:
    """In one line."""
    written(tmp_path / "sales" / "a.parquet", shop=[1])
    written(tmp_path / "nulls" / "a.parquet", shop=pa.array([None], pa.int64()))
    written(tmp_path / "delta" / "a.parquet", shop=[1])
    (tmp_path / "delta" / "_delta_log").mkdir()
    (tmp_path / "empty").mkdir()
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "a.parquet").write_bytes(b"PAR1 and nothing more")
    with pytest.raises(NoSampleError) as raised:
        sample([tmp_path / path], [column], [column])
    assert why in str(raised.value)


def test_without_pyarrow_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most installations of the observer have none."""
    monkeypatch.setattr(key_samples, "find_spec", lambda _: None)
    with pytest.raises(MachineError, match="install pyarrow"):
        key_samples.require()
