"""A score counts what a tool is right about; of sealed pairs it tells totals only."""

from typing import Any

import msgspec
import pytest

from truth.answers import Answer, Round, Where
from truth.scores import Output, Score, Share, read, text, totals

PLACE = Where(queries=[1], stages=[2, 3], lines=["job.py:7"])


def answer(*causes: str, **changes: Any) -> Answer:
    """The truth about a pair whose fix saves 10 s."""
    rounds = [Round(20_000 + more, 10_000 + more, 0.0, 0.0, "2026-11-25") for more in (0, 100, 50)]
    given = {"planted": "p", "quiet": "q", "causes": list(causes), "remaining": [], "form": "sql", "strength": "strong"}
    known = {"spark": "4.2.0", "saves_time": True, "developed_on": False, "place": PLACE, "rounds": rounds}
    return Answer(**{**given, **known, **changes})


def score(planted: list[dict[str, Any]], quiet: list[dict[str, Any]], **pairs: Answer) -> Score:
    """The score of a tool that says the same of each run."""
    output = {"tool": "x", "runs": {"p": planted, "q": quiet}}
    return read(msgspec.json.encode(output), opened=pairs, sealed={})


def test_the_planted_cause_alone_is_first_and_exact() -> None:
    """With its place and its cost."""
    found = {"cause": "spill", "place": {"stages": [2]}, "cost_ms": 12_000}
    (judged,) = score([found], [], pair=answer("spill")).open
    assert (judged.is_first, judged.is_exact, judged.alarms, judged.is_place_right) == (True, True, (), True)
    assert judged.error == pytest.approx(0.2)
    assert not judged.is_miss


def test_a_cost_is_judged_by_its_estimate_and_its_range_is_counted_apart() -> None:
    """5 s are far from 10 s, though they may be 12 s; a cost without a range is not counted."""
    ranged = {"cause": "spill", "cost_ms": 5000, "cost_low_ms": 4000, "cost_high_ms": 12_000}
    (judged,) = score([ranged], [], pair=answer("spill")).open
    assert (judged.error, judged.is_in_range) == (-0.5, True)
    (narrow,) = score([{**ranged, "cost_high_ms": 9000}], [], pair=answer("spill")).open
    assert narrow.is_in_range is False
    (sure,) = score([{"cause": "spill", "cost_ms": 5000}], [], pair=answer("spill")).open
    assert sure.is_in_range is None
    assert totals([judged, narrow, sure]).ranges == Share(1, 2)


def test_another_cause_before_it_is_neither_first_nor_exact() -> None:
    """The place and the cost are those of the planted cause all the same."""
    found: list[dict[str, Any]] = [{"cause": "skew"}, {"cause": "spill", "place": {"stages": [9]}}]
    (judged,) = score(found, [], pair=answer("spill")).open
    assert (judged.is_first, judged.is_exact, judged.is_place_right, judged.error) == (False, False, False, None)


def test_a_more_general_cause_is_right_and_a_more_special_one_is_not() -> None:
    """A hot key is skew; skew is no hot key."""
    (general,) = score([{"cause": "skew"}], [], pair=answer("skewed_key")).open
    (special,) = score([{"cause": "skewed_key"}], [], pair=answer("skew")).open
    assert (general.is_exact, special.is_exact) == (True, False)


def test_a_twin_has_a_false_alarm_for_what_is_not_true_of_it() -> None:
    """What remains in it may be said."""
    told = [{"cause": "external_wait"}, {"cause": "spill"}]
    (judged,) = score([], told, pair=answer("spill", remaining=["external_wait"])).open
    assert judged.alarms == ("spill",)
    assert not judged.named


def test_waiting_for_a_processor_is_judged_on_a_calm_machine_or_where_it_was_planted() -> None:
    """Elsewhere it may be true."""
    found = [{"cause": "cpu_starvation"}, {"cause": "spill"}]
    rounds = {load: [Round(20_000, 10_000, load, 0.0, "")] for load in (None, 0.1, 1.5)}
    unknown, calm, busy = (score(found, [], pair=answer("spill", rounds=each)).open[0] for each in rounds.values())
    (planted,) = score(found[:1], [], pair=answer("cpu_starvation", rounds=rounds[1.5])).open
    assert [each.is_exact for each in (unknown, calm, busy, planted)] == [True, False, True, True]


def test_a_cost_is_not_judged_where_times_overlap_or_the_twin_does_other_work() -> None:
    """The fix has then saved nothing that is known."""
    overlapping = [Round(20_000, 10_000, 0, 0, ""), Round(9000, 8000, 0, 0, "")]
    unmeasured = [Round(20_000, 10_000, None, None, "")]
    for changes in ({"rounds": overlapping}, {"rounds": unmeasured}, {"saves_time": False}):
        pair = answer("spill", **changes)
        (judged,) = score([{"cause": "spill", "cost_ms": 10_000}], [], pair=pair).open
        assert judged.error is None


def test_a_cost_is_of_all_causes_that_the_twin_lacks() -> None:
    """Since the fix of all of them was measured together; what remains in the twin, or is no cause, does not count."""
    costs = {"external_wait": 3000, "skew": 9000, "spill": 2000, "explode": 7000}
    found = [{"cause": cause, "cost_ms": cost} for cause, cost in costs.items()]
    pair = answer("skewed_key", "spill", "external_wait", remaining=["external_wait"])
    (judged,) = score(found, [], pair=pair).open
    assert judged.error == pytest.approx(0.1)


def test_a_line_is_more_exact_than_a_stage_and_a_stage_than_a_query() -> None:
    """The most exact place that is known and named is judged."""
    places: list[dict[str, Any]] = [
        {"lines": ["job.py:7"], "stages": [9]},
        {"stages": [9], "queries": [1]},
        {"queries": [1]},
        {},
    ]
    judged = [score([{"cause": "spill", "place": each}], [], pair=answer("spill")).open[0] for each in places]
    assert [each.is_place_right for each in judged] == [True, False, True, None]


def test_a_run_that_the_output_lacks_has_no_cause() -> None:
    """A tool cannot leave out what it does not know."""
    found = read(b'{"tool": "x", "runs": {}}', opened={"pair": answer("spill")}, sealed={})
    assert (found.open[0].is_first, found.open[0].alarms) == (False, ())


def test_sealed_pairs_are_told_in_total_only() -> None:
    """No name of one is in the text."""
    runs = {"p": [{"cause": "spill"}], "q": []}
    found = read(msgspec.json.encode({"tool": "x", "runs": runs}), opened={}, sealed={"secret": answer("spill")})
    assert (found.open, found.sealed.exact) == ((), Share(1, 1))
    assert "secret" not in text(found)
    assert "100 % (1 of 1)" in text(found)


def test_an_output_with_an_unknown_key_is_an_error() -> None:
    """It names the key."""
    with pytest.raises(msgspec.ValidationError, match="causes"):
        msgspec.json.decode(b'{"tool": "x", "runs": {"p": [{"causes": []}]}}', type=Output)


def test_an_output_with_an_unknown_run_is_an_error() -> None:
    """Else a typing error would count as a run without a cause."""
    with pytest.raises(LookupError, match="no log has the id x: "):
        read(b'{"tool": "x", "runs": {"x": []}}', opened={"pair": answer("spill")}, sealed={})
