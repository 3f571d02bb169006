import json
from pathlib import Path

import pytest

from spark_app.warehouse import delta_log
from spark_app.warehouse.fingerprint import MOST_BYTES, MOST_COMMITS, Fingerprint, by_module, decoded, encoded, written

MADE = Fingerprint(code="1", parts={"shop.etl": {"orders": "a", "net": "b"}}, schema=[("day", "date")], key=("day",))


def commit(table: Path, operation: str, metadata: str | None = None) -> None:
    """Adds a commit to the log of a table."""
    log = table / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    info = {"timestamp": 1_700_000_000_000, "operation": operation, "userMetadata": metadata}
    lines = [{"commitInfo": {name: value for name, value in info.items() if value}}, {"add": {"path": "a"}}]
    name = f"{len(list(log.iterdir())):020d}.json"
    (log / name).write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")


def test_a_fingerprint_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Behind the name of the writer; a commit of older programs has that alone."""
    metadata = delta_log.metadata_of("run#1", encoded(MADE))
    assert delta_log.writer_of(metadata) == delta_log.writer_of("run#1") == "run#1"
    assert (delta_log.made_in("run#1"), delta_log.made_in(None), delta_log.writer_of(None)) == ("", "", None)
    assert encoded(decoded(delta_log.made_in(metadata)) or Fingerprint()) == encoded(MADE)
    commit(tmp_path, "WRITE", metadata)
    found = written(tmp_path)
    assert found is not None
    assert found.fingerprint == decoded(encoded(MADE))
    assert (found.version, str(found.at)) == (0, "2023-11-14 22:13:20+00:00")


def test_a_long_fingerprint_names_modules_only() -> None:
    """Streams commit every few seconds: what each commit says stays short."""
    many = {"shop.etl": {f"function_{number}": f"{number:010}" for number in range(MOST_BYTES // 20)}}
    short = decoded(encoded(Fingerprint(code="1", parts=many)))
    assert short is not None
    assert short.parts == by_module(many) == by_module(by_module(many))
    assert by_module({**many, "shop.other": {"a": "1"}})["shop.etl"] == by_module(many)["shop.etl"]
    assert by_module({"shop.etl": {**many["shop.etl"], "function_0": "1"}}) != by_module(many)


def test_a_table_without_a_log_was_not_written(tmp_path: Path) -> None:
    """One that was created and got no rows was not, either."""
    assert written(tmp_path / "none") is None
    commit(tmp_path, "WRITE", delta_log.NO_ROWS)
    assert written(tmp_path) is None


@pytest.mark.parametrize("text", ["{}", '{"code": 5}', '{"code"'])
def test_a_form_that_is_not_known_is_no_fingerprint(tmp_path: Path, text: str) -> None:
    """Nothing older is taken for it."""
    commit(tmp_path, "WRITE", delta_log.metadata_of("run#1", encoded(MADE)))
    commit(tmp_path, "WRITE", delta_log.metadata_of("run#2", text))
    found = written(tmp_path)
    assert found is not None
    assert (found.fingerprint, found.problem) == (None, "its version 1 says it in a form that is not known")


def test_not_all_commits_are_read(tmp_path: Path) -> None:
    """A table that is compacted all day, and written never, is not looked through to its first commit."""
    commit(tmp_path, "WRITE", delta_log.metadata_of("run#1", encoded(MADE)))
    for _ in range(MOST_COMMITS):
        commit(tmp_path, "OPTIMIZE")
    found = written(tmp_path)
    assert found is not None
    assert (found.fingerprint, found.problem) == (None, f"none of its last {MOST_COMMITS} commits says how")


def test_a_log_that_is_damaged_says_nothing(tmp_path: Path) -> None:
    """And is no reason to fail for all other tables."""
    commit(tmp_path, "WRITE", delta_log.metadata_of("run#1", encoded(MADE)))
    (tmp_path / "_delta_log" / f"{1:020d}.json").write_text("{", encoding="utf-8")
    found = written(tmp_path)
    assert found is not None
    assert found.problem.startswith("its log cannot be read: ")
