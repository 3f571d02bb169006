from typing import Any

from tests.unit.eventlog.diagnoses.plans import MINUTE, Node, application, found, node, ran

NEVER: dict[str, Any] = {"cost_ms": 0, "cost_ratio": 0}


def parsed(*calls: str, rows: int = 1_000_000) -> Node:
    """A projection, which counts nothing, of rows that a scan gives."""
    columns = ", ".join(f"{call} AS c{number}#{number + 10}" for number, call in enumerate(calls))
    return node("Project", node("Scan parquet ", number_of_output_rows=rows), text=f"Project [{columns}]")


def judged(plan: Node) -> list[Any]:
    """What the rule says of a stage whose only task takes a minute."""
    lines = ran(1, plan)
    for line in lines:
        if line["Event"] == "SparkListenerTaskEnd":
            line["Task Metrics"]["Executor Run Time"] = MINUTE
    return found(application(lines), "repeated_json", **NEVER)


def test_json_that_is_parsed_for_each_field_is_found() -> None:
    """All but one parse of each row are saved, at 2 µs each."""
    (finding,) = judged(parsed(*(f"get_json_object(body#1, $.field{each})" for each in range(6))))
    assert finding.text == (
        "Query 1 (Query 1): parses each document of body 6 times, once for each of its fields (field0, field1, field2, "
        "…): 1,000,000 rows in 1 min 00 s of tasks, 60 µs each"
    )
    assert "F.from_json('body', 'field0 string, ...')" in finding.advice
    assert "all 6 fields" in finding.advice
    assert finding.cost_low_ms == (finding.cost_ms or 0) / 2


def test_fields_of_several_columns_or_the_same_field_are_not() -> None:
    """Spark computes equal expressions of a projection once."""
    columns = (f"get_json_object(body{each}#{each}, $.field)" for each in range(6))
    assert judged(parsed(*columns)) == []
    assert judged(parsed(*(6 * ["get_json_object(body#1, $.field)"]))) == []
