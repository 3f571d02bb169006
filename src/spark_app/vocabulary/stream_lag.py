"""How far a streaming query is behind its topics: what their brokers have beside what the query has processed.

Spark says once for each micro-batch what it left unread, and nothing until the next one ends. Between them records
arrive, so that the brokers are asked.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from spark_app.vocabulary.spark_progress import KafkaOffsets, Progress, offsets

Partition = tuple[str, int]
"""A topic and the number of one of its partitions."""


@dataclass(frozen=True)
class BrokerOffsets:
    """What brokers have of each partition, at one moment.

    Attributes:
        first: The offset of the oldest record that they still have.
        end: The offset that the next record gets.
    """

    first: Mapping[Partition, int]
    end: Mapping[Partition, int]


@dataclass(frozen=True)
class Lag:
    """What a query has not read of its topics, at one moment.

    Attributes:
        records: Unread records by topic.
        oldest: The timestamp of the oldest unread record by topic, in Unix time; None if it is not known, missing
            where nothing is unread.
    """

    records: Mapping[str, int]
    oldest: Mapping[str, float | None] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Unread records of all topics."""
        return sum(self.records.values())

    def seconds(self, now: float) -> dict[str, float]:
        """The age of the oldest unread record by topic, 0 where nothing is unread; unknown ones are left out.

        A timestamp in the future, as a wrong clock of a producer gives, says nothing about lag.
        """
        ages = {topic: now - oldest for topic, oldest in self.oldest.items() if oldest is not None}
        caught_up = {topic: 0.0 for topic in self.records if topic not in self.oldest}
        return caught_up | {topic: age for topic, age in ages.items() if age >= 0}

    def longest_seconds(self, now: float) -> float | None:
        """The age of the oldest unread record of all topics; None unless that of every topic is known."""
        ages = self.seconds(now)
        return max(ages.values(), default=None) if ages.keys() == self.records.keys() else None


AskLag = Callable[[], Lag | None]
"""What a query has not read by now; None while that is not known, as during an outage of the brokers."""


def processed_offsets(ends: Iterable[object]) -> dict[Partition, int]:
    """The next offset to read of each partition, from the end offsets of the sources of a query.

    Of a topic that is read twice, the source that is further behind counts.
    """
    processed: dict[Partition, int] = {}
    for each in ends:
        for partition, offset in _by_partition(offsets(each) or {}).items():
            processed[partition] = min(offset, processed.get(partition, offset))
    return processed


def unread(processed: Mapping[Partition, int], there: BrokerOffsets) -> dict[Partition, tuple[int, int]]:
    """The first unread offset and the end of each partition.

    A partition that the query has not seen yet is read from its beginning; what the brokers have deleted cannot be
    read any more.
    """
    firsts = {each: max(processed.get(each, 0), there.first.get(each, 0)) for each in there.end}
    return {each: (first, max(first, there.end[each])) for each, first in firsts.items()}


@dataclass(frozen=True)
class Gap:
    """Offsets of a topic that a micro-batch went over without reading a record of each.

    The brokers had deleted them, or they never were records: marks of transactions, and what a compaction removed.

    Attributes:
        topic: The topic.
        records: How many.
        offsets: Where the micro-batch began and ended, by partition.
    """

    topic: str
    records: int
    offsets: Mapping[Partition, tuple[int, int]]

    def deleted(self, there: BrokerOffsets) -> int:
        """How many of them the brokers had deleted, by the oldest records that they have now."""
        spans = ((begin, min(end, there.first.get(each, 0))) for each, (begin, end) in self.offsets.items())
        return min(self.records, sum(max(0, end - begin) for begin, end in spans))


def gaps(progress: Progress) -> list[Gap]:
    """The gaps of a micro-batch, of topics whose records were counted."""
    found = []
    for source in progress.sources:
        begins, ends = _by_partition(offsets(source.start) or {}), _by_partition(offsets(source.end) or {})
        for topic in {topic for topic, _ in ends}:
            spans = {each: (begins[each], end) for each, end in ends.items() if each[0] == topic and each in begins}
            read = progress.records_read(topic)
            missing = 0 if read is None else sum(end - begin for begin, end in spans.values()) - read
            if missing > 0:
                found.append(Gap(topic, missing, spans))
    return found


def _by_partition(of_topics: KafkaOffsets) -> dict[Partition, int]:
    return {
        (topic, int(number)): offset for topic, partitions in of_topics.items() for number, offset in partitions.items()
    }
