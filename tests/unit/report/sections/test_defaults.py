"""What says the same as a default, in whatever words."""

import pytest

from app.report.sections.defaults import BEFORE, DEFAULTS, default_of, is_default

VERSION = "4.2.0"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.executor.memory", "1g"),
        ("spark.executor.memory", "1024m"),
        ("spark.executor.memory", "1024"),
        ("spark.executor.memory", "1073741824b"),
        ("spark.sql.autoBroadcastJoinThreshold", "10485760"),
        ("spark.sql.autoBroadcastJoinThreshold", "10mb"),
        ("spark.network.timeout", "2min"),
        ("spark.network.timeout", "2m"),
        ("spark.network.timeout", "120000ms"),
        ("spark.memory.fraction", "0.60"),
        ("spark.sql.shuffle.partitions", "200.0"),
        ("spark.broadcast.blockSize", "4096k"),
        ("spark.speculation", "FALSE"),
    ],
)
def test_a_default_in_other_words_is_the_default(key: str, value: str) -> None:
    """By bytes and seconds, in the unit that Spark takes for a number without any."""
    assert is_default(key, value, VERSION)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.executor.memory", "1000m"),
        ("spark.executor.memory", "1073741824"),
        ("spark.sql.autoBroadcastJoinThreshold", "-1"),
        ("spark.network.timeout", "120"),
        ("spark.sql.shuffle.partitions", "200m"),
        ("spark.serializer", "org.apache.spark.serializer.KryoSerializer"),
        ("spark.executor.memory", "1g, then 2g"),
        ("spark.executor.memory", "much"),
        ("spark.executor.memory", "1 lightyear"),
        ("spark.my.own", "1g"),
    ],
)
def test_another_value_is_none(key: str, value: str) -> None:
    """Nor is one whose unit is not known, or whose key is none of Spark's."""
    assert not is_default(key, value, VERSION)


def test_a_default_is_that_of_the_version_that_ran() -> None:
    """Spark 4 has others than Spark 3; where the version is not known, neither is what differs between them."""
    versions = ["3.5.9-vendor", "4.0.5", "4.2.0", None]
    assert [default_of("spark.sql.ansi.enabled", version) for version in versions] == ["false", "true", "true", None]
    assert [default_of("spark.checkpoint.compress", version) for version in versions] == [
        "false",
        "false",
        "true",
        None,
    ]
    assert [default_of("spark.task.cpus", version) for version in versions] == ["1"] * 4
    assert BEFORE.keys() <= DEFAULTS.keys()
    assert not is_default("spark.sql.ansi.enabled", "true", "3.5.9")
