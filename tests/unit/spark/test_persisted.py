import pytest
from pyspark.sql import SparkSession

from spark_app.spark.persisted import persisted


def test_rows_are_persisted_for_a_block_only(spark: SparkSession) -> None:
    """Also where the block fails, and where what is computed of the rows fails before it is persisted, too."""
    with persisted(spark.range(3)) as kept:
        is_cached = kept.is_cached
    assert (is_cached, kept.is_cached) == (True, False)
    rows = spark.range(4)
    with pytest.raises(ZeroDivisionError), persisted(rows) as kept, persisted(kept.limit(1 // 0)):
        pass
    assert not rows.is_cached
