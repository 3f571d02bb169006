import datetime
import itertools
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from app.demo.event_stream import records
from app.demo.ledger import LEDGERS, MAX_LEDGERS, Plan, Tally, read_ledger
from spark_app.errors import InputError

PLAN: Final = Plan(start=datetime.datetime(2024, 1, 1, 8, tzinfo=datetime.UTC), rate=20)


def test_a_ledger_counts_what_was_sent_and_gives_it_again(tmp_path: Path) -> None:
    """Records by topic and by what was planted; a kind that has not come yet counts 0."""
    sent, tally = list(itertools.islice(records(PLAN), 5_000)), Tally(PLAN)
    tally.add(sent[:2_000])
    tally.add(sent[2_000:])
    ledger, file = tally.write(tmp_path)
    assert read_ledger(file) == ledger
    assert ledger.plan == PLAN
    assert ledger.parts == Counter(record.topic for record in sent)
    planted = Counter(record.fault for record in sent if record.fault)
    assert ledger.planted == dict.fromkeys(PLAN.shares, 0) | planted
    assert list(itertools.islice(records(PLAN), ledger.rows)) == sent


def test_ledgers_do_not_pile_up(tmp_path: Path) -> None:
    """Of many, the newest are kept."""
    folder = tmp_path / LEDGERS
    folder.mkdir()
    for number in range(MAX_LEDGERS + 5):
        (folder / f"20230101T{number:09}-7.json").touch()
    _, newest = Tally(PLAN).write(tmp_path)
    left = sorted(folder.iterdir())
    assert len(left) == MAX_LEDGERS
    assert left[-1] == newest


def test_a_file_that_is_no_ledger_is_named(tmp_path: Path) -> None:
    """One line says which."""
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(InputError, match=r"x\.json is not a ledger"):
        read_ledger(tmp_path / "x.json")
    with pytest.raises(InputError, match=r"cannot read ledger .*y\.json: No such file"):
        read_ledger(tmp_path / "y.json")
