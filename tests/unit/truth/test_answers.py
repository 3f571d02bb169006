"""What is true of a pair is added round by round; sealed answers are in a file of their own that one module opens."""

import ast
from pathlib import Path
from typing import Final

import pytest

from truth import answers
from truth.answers import Answer, Round, Where
from truth.declared import HERE, KINDS, LOGS, Pair, pairs

ROOT: Final = HERE.parent


def pair(*, is_sealed: bool) -> Pair:
    """A declared pair, open or sealed."""
    names = (f"pair-{number}" for number in range(100))
    return next(each for each in (Pair(name, ("spill",), "sql") for name in names) if each.is_sealed == is_sealed)


def add(of: Pair, load: float, stage: int, *, quiet_ms: int = 1000, observed: bool = False) -> Answer:
    """The truth about a pair with one round more."""
    rounds = [Round(2 * quiet_ms, quiet_ms, load, load, "2026-11-25", observed)]
    place = Where(stages=[stage])
    ids = of.run("planted"), of.run("quiet")
    found = answers.merged(of, Answer(*ids, ["spill"], [], "sql", "strong", "4.2.0", True, False, place, rounds))
    answers.write(of, found)
    return found


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for the answers."""
    monkeypatch.setattr(answers, "OPEN", tmp_path / "open.json")
    monkeypatch.setattr(answers, "SEALED", tmp_path / "sealed.zst")
    return tmp_path


def test_a_sealed_answer_is_not_in_the_open_file(files: Path) -> None:
    """Nor is it readable as it is."""
    sealed = pair(is_sealed=True)
    add(sealed, 0.1, 3)
    assert [file.name for file in files.iterdir()] == ["sealed.zst"]
    assert sealed.name.encode() not in (files / "sealed.zst").read_bytes()
    assert answers.opened() == {}
    assert list(answers.unsealed()) == [sealed.name]


def test_a_round_is_added_and_the_place_is_of_the_log_that_is_kept(files: Path) -> None:
    """That is the log of the calmest round."""
    about = pair(is_sealed=False)
    for load, stage in ((0.5, 1), (0.1, 2), (0.9, 3)):
        add(about, load, stage)
    found = answers.opened()[about.name]
    assert (len(found.rounds), found.place.stages, found.kept) == (3, [2], 1)


def test_the_log_of_an_observed_round_is_kept_rather_than_one_of_less_load(files: Path) -> None:
    """It has more to tell; but not from a machine that others kept busy."""
    about = pair(is_sealed=False)
    kept = [add(about, load, 0, observed=observed).kept for load, observed in ((0.0, False), (0.9, True), (0.1, True))]
    assert kept == [0, 0, 2]


def test_a_round_of_a_slower_machine_is_neither_counted_nor_kept(files: Path) -> None:
    """Its quiet twin tells it: this takes as long in all rounds on the same machine."""
    about = pair(is_sealed=False)
    found = [add(about, 0.0, 0, quiet_ms=quiet_ms) for quiet_ms in (1000, 1100, 2100, 500)]
    assert [len(each.calm) for each in found] == [1, 2, 2, 1]
    assert [each.kept for each in found] == [0, 0, 0, 3]
    assert found[2].saved_ms == 1050


def test_a_pair_that_is_forgotten_is_recorded_anew(files: Path) -> None:
    """Its rounds do not count any longer."""
    about = pair(is_sealed=False)
    add(about, 0.5, 1)
    assert answers.rounds(about) == 1
    answers.forget(about)
    assert answers.rounds(about) == 0


def test_only_the_score_opens_what_is_sealed() -> None:
    """No other module, and no test but this one, asks for it."""
    files = [
        file for folder in ("truth", "src", "tests", "scripts", "grafana") for file in (ROOT / folder).rglob("*.py")
    ]
    readers = {file.relative_to(ROOT).as_posix() for file in files if opens_sealed(file)}
    assert readers == {"truth/scores.py", "tests/unit/truth/test_answers.py"}


def opens_sealed(file: Path) -> bool:
    """Whether a module uses `answers.unsealed`, or names the file or its constant."""
    text = file.read_text(encoding="utf-8")
    if file == HERE / "answers.py" or "sealed" not in text.lower():
        return False
    tree = ast.parse(text)
    names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    names |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return bool(names & {"unsealed", "SEALED"}) or "sealed.zst" in texts


def test_a_third_of_the_pairs_is_sealed() -> None:
    """None that rules were developed with is."""
    sealed = [each for each in pairs().values() if each.is_sealed]
    assert 0.25 <= len(sealed) / len(pairs()) <= 0.45
    assert not any(each.is_developed_on for each in sealed)


def test_each_log_belongs_to_a_declared_pair_that_is_recorded() -> None:
    """And each recorded pair has both logs."""
    recorded = {each.run(kind) for each in pairs().values() if answers.rounds(each) for kind in KINDS}
    assert {log.stem for log in LOGS.glob("*.zst")} == recorded
    assert sum(log.stat().st_size for log in LOGS.glob("*.zst")) < 40e6
