import json

from spark_app.vocabulary.stream_lag import BrokerOffsets, gaps, processed_offsets, unread
from tests.unit.vocabulary.stream_progresses import INPUT, TOPIC, progress, source

FIRST, SECOND = (TOPIC, 0), (TOPIC, 1)


def test_a_topic_that_is_read_twice_is_as_far_as_the_slower_source() -> None:
    """And other sources, as files, have no offsets."""
    ends = [{TOPIC: {"0": 7, "1": 4}}, json.dumps({TOPIC: {"0": 5, "1": 6}}), {"logOffset": 3}]
    assert processed_offsets(ends) == {FIRST: 5, SECOND: 4}


def test_what_the_brokers_deleted_cannot_be_read_any_more() -> None:
    """And a partition that the query has not seen is read from its beginning."""
    there = BrokerOffsets({FIRST: 8, SECOND: 2}, {FIRST: 10, SECOND: 3})
    assert unread({FIRST: 5}, there) == {FIRST: (8, 10), SECOND: (2, 3)}
    assert unread({FIRST: 12, SECOND: 3}, there) == {FIRST: (12, 12), SECOND: (3, 3)}


def test_only_what_the_brokers_deleted_is_lost() -> None:
    """Offsets without a record may also be marks of transactions, or what a compaction removed."""
    sources = [source({TOPIC: {"0": 10}}, {TOPIC: {"0": 10}})[0] | {"startOffset": {TOPIC: {"0": 2}}}]
    (gap,) = gaps(progress(sources=sources, observedMetrics={INPUT: {"records": 5}}))
    assert (gap.topic, gap.records) == (TOPIC, 3)
    assert gap.deleted(BrokerOffsets({FIRST: 0}, {FIRST: 10})) == 0
    assert gap.deleted(BrokerOffsets({FIRST: 4}, {FIRST: 10})) == 2
    assert gap.deleted(BrokerOffsets({FIRST: 99}, {FIRST: 99})) == 3
    assert gaps(progress(sources=sources, observedMetrics={INPUT: {"records": 8}})) == []
    assert gaps(progress(sources=sources, observedMetrics={})) == []
