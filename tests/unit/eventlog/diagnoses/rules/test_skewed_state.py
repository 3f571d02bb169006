from spark_app.eventlog.model.stream_samples import StateSkew
from tests.unit.eventlog.diagnoses.stream_cases import application, batch, found


def test_the_same_partition_is_the_longest() -> None:
    """In each batch."""
    app = application([batch(number) for number in range(20)], skew=StateSkew(1, 900, 100, 700, {3: 1}))
    finding = found(app)["skewed_state"]
    assert "partition 3 was the longest in 100 % of them" in finding.text
    assert finding.cost_ms == 20 * 700
