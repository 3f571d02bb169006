"""What explains real runs with one thing planted, whose logs `tests.compare.record` has kept."""

import re
from itertools import permutations
from pathlib import Path
from typing import Final

import pytest
import zstandard

from app.eventlog.comparison.compare import compare
from tests.compare.cases import EQUAL, PLANTED, Planted, assert_first
from tests.compare.record import HERE, is_recorded, recorded

RECORDED: Final = [planted for planted in PLANTED if is_recorded(planted.run)]


def test_at_least_eight_causes_are_recorded() -> None:
    """Of most kinds of causes there is a real run to try."""
    assert len({planted.kind for planted in RECORDED}) >= 8


@pytest.mark.parametrize("planted", RECORDED, ids=lambda planted: planted.run.name)
def test_what_was_planted_in_a_real_run_is_ranked_first(planted: Planted) -> None:
    """One thing was out of order: it is what explains most of the difference, with its setting if it is one."""
    assert_first(compare([recorded(one) for one in planted.before], recorded(planted.run)), planted)


def test_equal_real_runs_have_no_cause() -> None:
    """Nothing was out of order, nothing is found: neither beside one run nor beside all others."""
    runs = [recorded(one) for one in EQUAL if is_recorded(one)]
    pairs = [compare(before, now) for before, now in permutations(runs, 2)]
    of_all = [compare([one for one in runs if one is not now], now) for now in runs]
    assert [compared.sentences for compared in [*pairs, *of_all] if compared.causes] == []


@pytest.mark.parametrize("log", sorted(HERE.iterdir()), ids=lambda log: log.stem)
def test_a_recorded_log_names_nothing_of_its_machine(log: Path) -> None:
    """Files of the run, the project and Python lie where they lie nowhere."""
    told = zstandard.ZstdDecompressor().decompressobj().decompress(log.read_bytes())
    assert set(re.findall(rb"(?:file:|at )/+(\w+)", told)) <= {b"work", b"project", b"python"}
    assert set(re.findall(rb'"Host":"([^"]*)"', told)) <= {b"localhost", b"127.0.0.1"}
