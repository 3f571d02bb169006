from collections.abc import Callable, Mapping
from typing import Final

from spark_app.annexes.tune.search import Figures, Search, Stopped
from spark_app.annexes.tune.settings import Candidate
from spark_app.eventlog.diagnoses.trials import Goal

RUN_SECONDS: Final = 10.0


def candidate(setting: str, value: str = "1", goal: Goal = "time") -> Candidate:
    """A setting to try."""
    return Candidate(setting, value, None, "it helps", "sign", None, goal)


class Program:
    """A program whose time, or what it says instead, follows from its settings; each run takes 10 s of the clock."""

    def __init__(self, takes: Callable[[Mapping[str, str]], float | str]) -> None:
        self.takes = takes
        self.ran: list[dict[str, str]] = []
        self.now = 0.0

    def measure(self, settings: Mapping[str, str], _name: str) -> Figures | str:
        """Runs it."""
        self.ran.append(dict(settings))
        self.now += RUN_SECONDS
        took = self.takes(settings)
        return took if isinstance(took, str) else Figures(took, took, took)

    def search(self, *candidates: Candidate, pairs: int = 3, budget: float = 10_000) -> Search:
        """Searched to the end."""
        found = Search(
            self.measure, candidates, pairs=pairs, budget=budget, first_seconds=RUN_SECONDS, clock=lambda: self.now
        )
        found.go()
        return found


def test_what_helps_is_tried_together_in_new_pairs() -> None:
    """Two settings save a fifth each; a third one makes it slower, and is not among them."""
    program = Program(lambda given: 100 * 0.8 ** ("a" in given) * 0.8 ** ("b" in given) * 1.1 ** ("c" in given))
    found = program.search(candidate("a"), candidate("b"), candidate("c"))
    assert found.together is not None
    assert found.together.settings == {"a": "1", "b": "1"}
    assert found.together.verdict == "helps"
    assert [trial.verdict for trial in found.trials] == ["helps", "helps", "slower"]
    assert program.ran[-6:].count({}) == 3


def test_rounds_have_the_baseline_among_them_in_turned_order() -> None:
    """So a machine that becomes slower favours nobody."""
    program = Program(lambda given: 90 if given else 100)
    program.search(candidate("a"), candidate("b"))
    assert program.ran[:6] == [{}, {"a": "1"}, {"b": "1"}, {"b": "1"}, {"a": "1"}, {}]


def test_what_is_no_faster_is_dropped_after_two_rounds() -> None:
    """The rest of the budget is for the others."""
    program = Program(lambda given: 100 * 0.8 ** ("a" in given))
    found = program.search(candidate("a"), candidate("b"), pairs=5)
    assert [len(trial.pairs) for trial in found.trials] == [5, 2]


def test_a_setting_that_cannot_be_measured_is_run_once() -> None:
    """It failed, changed the result, or was not in force: the reason stands in its place."""
    program = Program(lambda given: "changes the result" if given else 100)
    found = program.search(candidate("a"))
    assert (found.trials[0].problem, found.trials[0].verdict) == ("changes the result", "not measured")
    assert (len(program.ran), found.together, found.stopped) == (2, None, "")


def test_the_budget_ends_the_search_before_it_is_spent() -> None:
    """No round begins that has no room; what is known stays."""
    program = Program(lambda given: 50 if given else 100)
    found = program.search(candidate("a"), pairs=3, budget=105)
    assert program.now <= 105
    assert [len(trial.pairs) for trial in found.trials] == [3]
    assert found.together is not None
    assert found.stopped == "the budget was enough for 2 of 3 pairs of what helped"
    assert found.together.verdict == "too few runs"


def test_settings_without_room_in_the_budget_are_not_tried() -> None:
    """The most promising ones are first."""
    program = Program(lambda given: 90 if given else 100)
    found = program.search(candidate("a"), candidate("b"), candidate("c"), pairs=3, budget=150)
    assert [trial.problem for trial in found.trials] == [None, None, "not tried: the budget is too small"]


def test_an_interrupt_leaves_what_is_known() -> None:
    """The pairs so far, and why it ended."""
    program = Program(lambda given: 50 if given else 100)

    def measure(settings: Mapping[str, str], name: str) -> Figures | str:
        if len(program.ran) == 7:
            raise Stopped("interrupted")
        return program.measure(settings, name)

    found = Search(measure, [candidate("a")], pairs=3, budget=10_000, first_seconds=1)
    found.go()
    assert found.stopped == "interrupted"
    assert found.trials[0].verdict == "helps"


def test_a_baseline_that_fails_ends_the_search() -> None:
    """Nothing can be compared with it."""
    found = Program(lambda _: "failed with exit code 1").search(candidate("a"))
    assert found.stopped == "a run without any of the settings: failed with exit code 1"


def test_if_together_they_do_not_help_the_best_of_them_may() -> None:
    """Settings may undo each other."""
    program = Program(lambda given: {0: 100, 1: 80 if "a" in given else 90, 2: 120}[len(given)])
    found = program.search(candidate("a"), candidate("b"))
    assert found.together is not None
    assert (found.together.settings, found.together.verdict) == ({"a": "1"}, "helps")


def test_of_two_values_of_a_setting_the_better_one_is_kept() -> None:
    """A setting has one value."""
    program = Program(lambda given: {None: 100, "1": 80, "2": 60}[given.get("a")])
    found = program.search(candidate("a", "1"), candidate("a", "2"))
    assert found.together is not None
    assert found.together.settings == {"a": "2"}


def test_what_saves_cost_may_not_take_longer() -> None:
    """A setting that is to save cost is judged by it."""

    def measure(settings: Mapping[str, str], _name: str) -> Figures | str:
        return Figures(100 * float(settings.get("slower", 1)), 100, 50 if settings else 100)

    for slower, verdict in (("1", "helps"), ("1.2", "slower")):
        found = Search(measure, [candidate("slower", slower, "cost")], pairs=3, budget=1000, first_seconds=1)
        found.go()
        assert found.trials[0].verdict == verdict
