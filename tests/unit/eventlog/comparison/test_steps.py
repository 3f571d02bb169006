"""How long Spark worked for each step, by the marks on its jobs and queries."""

from spark_app.eventlog.comparison.steps import steps
from tests.unit.eventlog.log import Line, ended, job, job_ended, query, query_ended, read, started


def work(
    number: int, begin: int, end: int | None, *, step: int | None = 1, description: str = "etl 2024-01-01: a"
) -> list[Line]:
    """A job for a step, which may be at work still."""
    marks = {} if step is None else {"traceparent": f"00-{'a' * 32}-{step:016x}-01"}
    begun = job(number, [number], time=begin, **marks, **{"spark.job.description": description})
    return [begun, *([] if end is None else [job_ended(number, time=end)])]


def step_ms(*works: list[Line]) -> dict[str, float]:
    """The steps of an application."""
    return steps(read([started(), *(line for each in works for line in each), ended()])[0])


def test_a_step_lasts_from_its_first_work_to_its_last() -> None:
    """Whatever it waited for in between; the shortest description is its own, the others are those of libraries."""
    own = work(1, 2500, 4000)
    assert step_ms(work(0, 2000, 2100, description="Delta: etl 2024-01-01: a: Filtering files"), own) == {
        "etl #: a": 2000
    }


def test_the_same_step_of_several_runs_is_added_up() -> None:
    """What lies between them is of neither."""
    other = work(1, 5000, 5300, step=2, description="etl 2024-01-02: a")
    assert step_ms(work(0, 2000, 2100), other, work(2, 6000, 6001, step=3, description="b")) == {
        "etl #: a": 400,
        "b": 1,
    }


def test_what_is_of_no_step_or_at_work_is_left_out() -> None:
    """A stranger's application has no steps."""
    assert step_ms(work(0, 2000, 2100, step=None), work(1, 2000, None)) == {}


def test_a_query_belongs_to_a_step_beyond_its_jobs() -> None:
    """It has a beginning before its first job, and an end after its last."""
    job_of_query = job(0, [0], time=2000, traceparent=f"00-{'a' * 32}-{1:016x}-01", **{"spark.sql.execution.id": "0"})
    lines = [query(0, time=1900), job_of_query, job_ended(0, time=2100), query_ended(0, time=3100)]
    assert list(step_ms(lines).values()) == [1200]
