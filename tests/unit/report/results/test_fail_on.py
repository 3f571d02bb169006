from typing import Any

import pytest
from msgspec import convert
from msgspec.structs import replace

from spark_app.eventlog.comparison.compare import Comparison
from spark_app.eventlog.diagnoses.rule import rules
from spark_app.report.parts import Figures
from spark_app.report.results.fail_on import FIGURES as FIGURES_THAT_LIMIT
from spark_app.report.results.fail_on import RULES, parse, sentence, with_failed_conditions, without_baseline
from spark_app.report.results.schema import Application, Error, Finding, Results

FIGURES = convert(dict.fromkeys(Figures.__struct_fields__, 0) | {"price": None, "currency": None}, Figures)


def finding(rule: str, severity: Any = "warning") -> Finding:
    """A finding of a rule."""
    return Finding(rule, severity, rules()[rule].subject, f"{rule} it is", "", {}, None, None, None, [])


def application(*findings: Finding, id: str = "app-1", slower: float | None = None) -> Application:  # noqa: A002
    """An application with findings, and as much slower than before."""
    compared = None if slower is None else comparison(slower)
    start: tuple[Any, ...] = (
        id,
        "shop",
        "log",
        "r.html",
        None,
        None,
        None,
        None,
        "succeeded",
        "succeeded",
        None,
        FIGURES,
    )
    return Application(*[*start, list(findings), [], [], compared, [], "", []])


def comparison(slower: float, *, is_significant: bool = True) -> Comparison:
    """A run that is as much slower than one of 10 s."""
    added = round(10_000 * slower)
    both: tuple[Any, ...] = ("shop", "b", "a", 1, 10_000 + added, 10_000, added, slower, 500, is_significant)
    return Comparison(*[*both, [], 0, [], [], []])


def observed(*applications: Application, **changes: Any) -> Results:
    """What a command found."""
    return Results(command="observe", applications=list(applications), **changes)


def failed(results: Results, *conditions: str) -> list[str]:
    """Which conditions hold, and why."""
    found = with_failed_conditions(results, [parse(condition) for condition in conditions])
    return [f"{each.condition}: {each.reason}" for each in found.failed_on]


def test_a_warning_fails_and_an_info_does_not() -> None:
    """The reason names the rules once."""
    assert failed(observed(application(finding("spill", "info"))), "warning") == []
    found = [finding("spill"), finding("spill"), finding("driver_gap")]
    assert failed(observed(application(*found)), "warning") == ["warning: 3 warnings (spill, driver_gap)"]


def test_a_rule_fails_by_its_name_whatever_its_severity() -> None:
    """And no other one."""
    results = observed(application(finding("spill", "info"), finding("driver_gap")))
    assert failed(results, "spill", "huge_partitions") == ["spill: spill it is"]


def test_all_findings_are_judged_and_the_worst_are_kept() -> None:
    """A rule whose finding is not among the worst fails as well."""
    results = observed(application(*[finding("spill")] * 150, finding("driver_gap", "info")))
    assert failed(results, "driver_gap") == ["driver_gap: driver_gap it is"]
    assert len(with_failed_conditions(results, []).applications[0].findings) == 100


@pytest.mark.parametrize(("slower", "fails"), [(0.21, True), (0.2, False), (-0.5, False)])
def test_a_run_must_be_slower_by_more_than_the_limit(slower: float, *, fails: bool) -> None:
    """The same for a report as for a comparison."""
    for results in observed(application(slower=slower)), Results(command="compare", comparison=comparison(slower)):
        reasons = failed(results, "slower:20%")
        assert reasons == (["slower:20%: 21 % slower, 12.1 s, before 10.0 s"] if fails else [])


def test_noise_never_fails() -> None:
    """A second more is a fifth of a short run, and happens by itself."""
    results = Results(command="compare", comparison=comparison(0.4, is_significant=False))
    assert failed(results, "slower:20%") == []


def test_a_first_run_passes_and_says_so() -> None:
    """There is nothing that it could be slower than."""
    results, conditions = observed(application()), [parse("slower:20%"), parse("warning")]
    assert failed(results, "slower:20%") == []
    (line,) = without_baseline(results, conditions)
    assert line.startswith("--fail-on slower:20%: not judged, shop has no earlier successful run")


@pytest.mark.parametrize(
    ("results", "why"),
    [(observed(), "no Spark application was observed"), (observed(application(), error=Error("X", "boom")), "boom")],
)
def test_what_cannot_be_judged_fails(results: Results, why: str) -> None:
    """A check that looks at nothing must not look green."""
    assert failed(results, "warning") == [f"warning: cannot be judged: {why}"]


def test_the_exit_code_is_5_unless_there_is_another() -> None:
    """That of the observed program stays, and then nothing else went wrong."""
    conditions = [parse("warning")]
    found = with_failed_conditions(observed(application(finding("spill"))), conditions)
    assert found.error is not None
    assert (found.exit_code, found.error.type) == (5, "FailOnError")
    assert found.error.message == "--fail-on warning: 1 warning (spill)"
    assert with_failed_conditions(observed(application(finding("spill")), exit_code=3), conditions).exit_code == 3
    assert with_failed_conditions(observed(application()), conditions) == observed(application())


def test_one_line_says_all_that_fails_and_where() -> None:
    """Applications are named where there are several."""
    results = observed(application(finding("spill")), application(finding("spill"), id="app-2"))
    assert sentence(with_failed_conditions(results, [parse("spill")]).failed_on) == (
        "--fail-on spill: spill it is (app-1); --fail-on spill: spill it is (app-2)"
    )


@pytest.mark.parametrize("text", ["spil", "", "slower", "slower:x%", "slower:20", "slower:-5%", "Warning"])
def test_an_unknown_condition_is_refused(text: str) -> None:
    """A rule with a typing error would never fail; the nearest one is proposed."""
    with pytest.raises(ValueError, match="is neither warning, job, data or host, nor a rule"):
        parse(text)
    with pytest.raises(ValueError, match=r"did you mean spill\?"):
        parse("spil")


def test_every_rule_is_a_condition() -> None:
    """Also those of streams and of whole applications."""
    assert {"spill", "small_files_read", "falling_behind", "failed_application"} < RULES
    assert [parse(rule).slower for rule in sorted(RULES)] == [None] * len(RULES)


def test_what_a_busy_host_causes_fails_only_where_it_is_named() -> None:
    """A healthy job passes `warning` on any host; `host`, or the rule itself, asks for more."""
    results = observed(application(finding("cpu_starvation")))
    assert failed(results, "warning", "job", "data") == []
    assert failed(results, "host", "cpu_starvation") == [
        "host: 1 warning (cpu_starvation)",
        "cpu_starvation: cpu_starvation it is",
    ]
    both = observed(application(finding("cpu_starvation"), finding("partition_skew"), finding("spill")))
    assert failed(both, "warning") == ["warning: 2 warnings (partition_skew, spill)"]
    assert failed(both, "data", "job") == ["data: 1 warning (partition_skew)", "job: 1 warning (spill)"]


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("more:tasks:50000", None),
        ("more:tasks:49999", "tasks 50,000, more than 49,999"),
        ("fewer:rows_written:1", "rows_written 0, fewer than 1"),
        ("more:spilled_bytes:1GiB", "spilled_bytes 1.5 GiB, more than 1.0 GiB"),
        ("more:spilled_bytes:1.5GiB", None),
        ("more:core_hours:0.5", "core_hours 1.25, more than 0.5"),
        ("more:rows_read:9", "cannot be judged: the event log has no rows_read"),
        ("more:price:1", "cannot be judged: no price, set prices.core_hour in config/app.yml"),
    ],
)
def test_a_figure_fails_beyond_its_limit(condition: str, reason: str | None) -> None:
    """The reason has the figure and the limit; what is unknown cannot look green."""
    figures = replace(FIGURES, tasks=50_000, spilled_bytes=3 << 29, core_hours=1.25, rows_read=None, price=None)
    results = observed(replace(application(), figures=figures))
    assert failed(results, condition) == ([f"{condition}: {reason}"] if reason else [])


def test_a_limit_of_an_unknown_figure_or_unit_is_refused() -> None:
    """It names the figures that there are."""
    with pytest.raises(ValueError, match="task is none of core_hours, price, tasks"):
        parse("more:task:5")
    with pytest.raises(ValueError, match="tasks is no size in bytes: leave GiB out"):
        parse("more:tasks:1GiB")
    assert set(FIGURES_THAT_LIMIT) < set(Figures.__struct_fields__)
