"""Event logs of any size: a recorded query of Spark, repeated with other numbers, later times and more tasks."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.eventlogs import golden, walking

VERSION: Final = "4.2.0"
FIRST_QUERY: Final = b'SparkListenerSQLExecutionStart","executionId":0,'
LAST_OF_IT: Final = b'SparkListenerSQLExecutionEnd","executionId":0,'
TASK_STARTS: Final = b'{"Event":"SparkListenerTaskStart","Stage ID":0,'
TASK_ENDS: Final = b'{"Event":"SparkListenerTaskEnd","Stage ID":0,'
STAGE_ENDS: Final = b'{"Event":"SparkListenerStageCompleted","Stage Info":{"Stage ID":0,'
APP_ID: Final = re.compile(rb'"App ID":"([^"]+)"')
APART: Final = 1_000
"""The distance between the ids of two queries; the jobs, stages and accumulables of one have fewer."""
APART_MS: Final = 30_000
SPREAD_MS: Final = 251
"""Tasks end up to so much later than the recorded one, but before their stage."""
FIRST_TASK: Final = 1_000_000_000
_NUMBERS: Final = re.compile(
    rb'("(?:ID|Job ID|Stage ID|Task ID|RDD ID|executionId|rootExecutionId|accumulatorId)":'
    rb'|"spark\.sql\.execution\.(?:root\.)?id":")(\d+)'
)
_STAGES: Final = re.compile(rb'"(?:Stage|Parent) IDs":\[[\d,]+\]')
_PAIRS: Final = re.compile(rb"(\[)(\d+)(?=,\d+\])")
_TIMES: Final = re.compile(rb"()\b(1\d{12})\b")
_DIGITS: Final = re.compile(rb"()(\d+)")
_TASK: Final = re.compile(rb'"Task ID":\d+,"Index":\d+')
_FINISH: Final = re.compile(rb'"Finish Time":(\d+)')
_COUNT: Final = re.compile(rb'("Stage ID":0,"Stage Attempt ID":0,"Stage Name":"[^"]*","Number of Tasks":)\d+')


@dataclass(frozen=True)
class Recorded:
    """The parts of a recorded log.

    Attributes:
        head: The lines before the first query.
        before, after: The lines of the query before and after the tasks of its first stage.
        task: The two lines of one task of that stage.
        tail: The end of the application.
    """

    head: Sequence[bytes]
    before: Sequence[bytes]
    task: tuple[bytes, bytes]
    after: Sequence[bytes]
    tail: bytes


def recorded(folder: Path, app_id: str) -> Recorded:
    """The parts of the recorded log under another application id; the folder holds the unpacked log."""
    lines = list(walking.lines(golden.log(VERSION, "zstd", folder)))
    own_id = next(match[1] for line in lines if (match := APP_ID.search(line)))
    lines = [line.replace(own_id, app_id.encode()) for line in lines]
    first, last = (
        next(index for index, line in enumerate(lines) if text in line) for text in (FIRST_QUERY, LAST_OF_IT)
    )
    query = lines[first : last + 1]
    starts, ends = ([line for line in query if line.startswith(text)] for text in (TASK_STARTS, TASK_ENDS))
    end = next(index for index, line in enumerate(query) if line.startswith(STAGE_ENDS))
    before = [line for line in query[:end] if line not in (*starts, *ends)]
    return Recorded(lines[:first], before, (starts[0], ends[0]), query[end:], lines[-1])


def write_log(log: Path, tasks: int, *, per_stage: int) -> int:
    """Writes the log of an application with about so many tasks, most in stages of so many; the number of lines."""
    parts, count = recorded(log.parent, log.name), 0
    with log.open("wb") as file:
        file.writelines(line + b"\n" for line in parts.head)
        count += len(parts.head)
        for number in range(max(1, tasks // per_stage)):
            lines = list(query(parts, number, per_stage))
            file.writelines(line + b"\n" for line in lines)
            count += len(lines)
        file.write(parts.tail + b"\n")
    return count + 1


def query(parts: Recorded, number: int, tasks: int) -> Iterator[bytes]:
    """The lines of a query whose first stage has so many tasks."""
    wider = rb"\g<1>%d" % tasks
    yield from (renumbered(_COUNT.sub(wider, line), number) for line in parts.before)
    start, end = (_template(renumbered(line, number)) for line in parts.task)
    finished = int(_FINISH.findall(renumbered(parts.task[1], number))[0])
    for index in range(tasks):
        task = FIRST_TASK + number * tasks + index
        yield start % (task, index, 0)
        yield end % (task, index, finished + index * 7 % SPREAD_MS)
    yield from (renumbered(_COUNT.sub(wider, line), number) for line in parts.after)


def renumbered(line: bytes, number: int) -> bytes:
    """A line of the recorded query with the ids and times of a later one."""

    def add(match: re.Match[bytes], by: int = number * APART) -> bytes:
        return match[1] + b"%d" % (int(match[2]) + by)

    line = _NUMBERS.sub(add, line)
    line = _STAGES.sub(lambda match: _DIGITS.sub(add, match[0]), line)
    if b'"accumUpdates"' in line:
        line = _PAIRS.sub(add, line)
    return _TIMES.sub(lambda match: add(match, number * APART_MS), line)


def _template(line: bytes) -> bytes:
    """The line of a task, as a format string for its id, its index and its end."""
    return _FINISH.sub(rb'"Finish Time":%d', _TASK.sub(rb'"Task ID":%d,"Index":%d', line.replace(b"%", b"%%")))
