import datetime
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from spark_app.commands import errors, etl
from spark_app.errors import QualityGateError, UsageError
from tests.unit.conftest import Printed
from tests.unit.run_records import example_record

DAY = datetime.date(2024, 1, 1)
SALES = example_record(
    pipeline="etl.daily_sales",
    counts={"published": 1_000_000, "quarantined": 300, "duplicates": 45},
    seconds=75,
    tables={"transactions": "s3a://shop/transactions", "daily_sales": "s3a://shop/daily_sales"},
    folder=Path("/runs/r2"),
)


def job(*results: Any, error: BaseException | None = None) -> Callable[[], Sequence[Any]]:
    """A job with these results, ended by an error that carries them, if one is given."""

    def run() -> Sequence[Any]:
        if error is not None:
            error.results = results  # type: ignore[attr-defined]
            raise error
        return results

    return run


@pytest.mark.parametrize(("date", "bound"), [(None, None), (DAY, None), (DAY, DAY)])
def test_missing_days_are_those_of_a_range(date: datetime.date | None, bound: datetime.date | None) -> None:
    """Not of a day, which is told at once."""
    with pytest.raises(UsageError, match=r"^--missing looks for days of a range: give --from and --to, not --date$"):
        etl.etl(missing=True, date=date, first=bound, last=bound)


def test_a_run_ends_with_its_figures_and_where_things_are(printed: Printed) -> None:
    """What all rows have in common is in the title; a figure that nobody knows is a dash; each place is a line."""
    etl.summarize(printed.terminal, [example_record(), SALES], seconds=76.3)
    assert printed.out.getvalue().splitlines() == [
        "",
        "2024-01-01: 2 succeeded in 1 min 16 s",
        "pipeline           read  published  quarantined  duplicates        time",
        "etl.customers    12,345     12,000          300          45       1.2 s",
        "etl.daily_sales       -  1,000,000          300          45  1 min 15 s",
        "",
        "table customers      s3a://shop/customers",
        "table transactions   s3a://shop/transactions",
        "table daily_sales    s3a://shop/daily_sales",
        "run etl.customers    /runs/r1",
        "run etl.daily_sales  /runs/r2",
    ]


def test_what_differs_between_runs_is_a_column(printed: Printed) -> None:
    """Days and outcomes are shown per run where they differ; many folders are one line."""
    rejected = example_record(slice="2024-01-02", outcome="missing_input", counts={"read": 12_345})
    etl.summarize(printed.terminal, [example_record(), SALES, rejected], seconds=4)
    lines = printed.out.getvalue().splitlines()
    assert lines[1] == "2024-01-01 to 2024-01-02: 2 succeeded, 1 missing input in 4.0 s"
    assert lines[2].split()[:4] == ["pipeline", "date", "outcome", "read"]
    assert lines[5].split()[:5] == ["etl.customers", "2024-01-02", "missing_input", "12,345", "-"]
    assert lines[-1] == "runs                3 folders in /runs"


def test_of_many_runs_the_list_of_their_reports_is_told(printed: Printed) -> None:
    """A line each would be too many; where they are served it is an address."""
    served = [example_record(report=f"http://localhost:8088/r-{number}.html") for number in range(3)]
    etl.summarize(printed.terminal, served, seconds=4)
    assert printed.out.getvalue().splitlines()[-1] == "reports          http://localhost:8088/index.html"


def test_runs_that_ended_before_a_failure_are_told(printed: Printed) -> None:
    """A failure hides nothing of what was done, and still ends the program."""
    with pytest.raises(QualityGateError):
        etl.perform(job(example_record(), error=QualityGateError("x")), terminal=printed.terminal, is_json=False)
    assert "etl.customers" in printed.out.getvalue()


def test_an_interruption_is_told_likewise(printed: Printed) -> None:
    """Ctrl-C shows what was done until then."""
    with pytest.raises(KeyboardInterrupt):
        etl.perform(job(example_record(), error=KeyboardInterrupt()), terminal=printed.terminal, is_json=False)
    assert "etl.customers" in printed.out.getvalue()


def test_a_failure_before_the_first_run_prints_no_table(printed: Printed) -> None:
    """Nothing was done, so nothing is printed."""
    with pytest.raises(QualityGateError):
        etl.perform(job(error=QualityGateError("x")), terminal=printed.terminal, is_json=False)
    assert printed.out.getvalue() == ""


def test_json_has_all_that_is_known(printed: Printed) -> None:
    """Standard output is one document with the runs as they are; what is not known is null."""
    etl.perform(job(SALES), terminal=printed.terminal, is_json=True)
    document = json.loads(printed.out.getvalue())
    assert (document["exit_code"], document["error"], document["runs"][0]["counts"]["published"]) == (
        0,
        None,
        1_000_000,
    )
    assert (document["runs"][0]["slice"], document["runs"][0]["folder"]) == ("2024-01-01", "/runs/r2")


def test_a_failure_prints_no_second_document(printed: Printed) -> None:
    """With --json the failure's own document is the only one."""
    with pytest.raises(QualityGateError):
        etl.perform(job(example_record(), error=QualityGateError("x")), terminal=printed.terminal, is_json=True)
    assert printed.out.getvalue() == ""


@pytest.mark.parametrize("error", [QualityGateError("x"), KeyboardInterrupt()])
def test_the_document_of_a_failure_has_what_that_of_a_success_has(
    printed: Printed, capsys: pytest.CaptureFixture[str], error: BaseException
) -> None:
    """Also beside the runs: the card of a version says why it was refused."""
    with pytest.raises(type(error)) as raised:
        etl.perform(
            job(example_record(), error=error),
            terminal=printed.terminal,
            is_json=True,
            also=lambda runs: {"models": [len(runs)]},
        )
    errors.report(raised.value, errors.OutputOptions(json=True))
    document = json.loads(capsys.readouterr().out)
    assert ([run["pipeline"] for run in document["runs"]], document["models"]) == (["etl.customers"], [1])
