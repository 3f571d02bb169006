from collections.abc import Sequence
from typing import Any

import pytest
from opentelemetry.sdk.resources import Resource

from spark_app.telemetry import profiles
from spark_app.telemetry.profiles import Observations, Origin, Profile, ProfileFrame, SpanLink, Stack, requests

CPU = ("cpu", "nanoseconds")
SCORE = ProfileFrame("cpython", "score", "job.py", 3)
MAIN = ProfileFrame("cpython", "main", "worker.py", 9)
BOTH, ALONE = Stack((SCORE, MAIN)), Stack((MAIN,))
RESOURCE = Resource({"service.name": "shop"})


def of(observations: dict[Origin, Observations], key: str = "a") -> Profile:
    """A profile of processors."""
    return Profile(key, CPU, observations, CPU, 10)


def sent(*found: Profile) -> Any:
    """The only request of profiles."""
    [request] = requests(found, RESOURCE)
    return request


def values(request: Any) -> list[int]:
    """All values in a request."""
    samples = [sample for profile in in_request(request) for sample in profile.samples]
    return [value for sample in samples for value in sample.values]


def in_request(request: Any) -> Sequence[Any]:
    """The profiles of a request."""
    [resource] = request.resource_profiles
    [scope] = resource.scope_profiles
    return list(scope.profiles)


def test_a_sample_has_its_stack_values_times_and_span() -> None:
    """The innermost function first; units are texts of the dictionary."""
    origin = Origin(BOTH, SpanLink(0xAB, 0xCD), (("spark.stage.id", 4),))
    request = sent(of({origin: Observations([1_000, 2_000], [10, 30])}))
    dictionary, [profile] = request.dictionary, in_request(request)
    [sample], texts = profile.samples, dictionary.string_table
    locations = [
        dictionary.location_table[index] for index in dictionary.stack_table[sample.stack_index].location_indices
    ]
    functions = [dictionary.function_table[location.lines[0].function_index] for location in locations]
    [attribute] = [dictionary.attribute_table[index] for index in sample.attribute_indices]
    link = dictionary.link_table[sample.link_index]
    assert [texts[each.name_strindex] for each in functions] == ["score", "main"]
    assert [texts[each.filename_strindex] for each in functions] == ["job.py", "worker.py"]
    assert [location.lines[0].line for location in locations] == [3, 9]
    assert ([*sample.values], [*sample.timestamps_unix_nano]) == ([10, 30], [1_000, 2_000])
    assert (link.trace_id.hex(), link.span_id.hex()) == (f"{0xAB:032x}", f"{0xCD:016x}")
    assert (texts[attribute.key_strindex], attribute.value.int_value) == ("spark.stage.id", 4)
    assert tuple(texts[each] for each in (profile.sample_type.type_strindex, profile.sample_type.unit_strindex)) == CPU
    assert (profile.time_unix_nano, profile.duration_nano, profile.period) == (1_000, 1_001, 10)
    [resource] = request.resource_profiles
    assert {each.key: each.value.string_value for each in resource.resource.attributes} == {"service.name": "shop"}


def test_every_table_begins_with_an_empty_entry_and_has_each_thing_once() -> None:
    """So an index of 0 means that there is none, and a frame of two stacks is written once."""
    dictionary = sent(
        of({Origin(BOTH): Observations([1], [1]), Origin(ALONE): Observations([1], [1])}),
        of({Origin(BOTH): Observations([2], [2])}, "b"),
    ).dictionary
    assert dictionary.string_table[0] == ""
    tables = {name: getattr(dictionary, f"{name}_table") for name in profiles._TABLES}
    assert all(table[0] == type(table[0])() for table in tables.values())
    assert {name: len(table) - 1 for name, table in tables.items()} == {
        "mapping": 0,
        "location": 2,
        "function": 2,
        "link": 0,
        "attribute": 1,
        "stack": 2,
    }
    assert len(set(dictionary.string_table)) == len(dictionary.string_table)


def test_the_time_of_a_profile_contains_those_of_all_its_samples() -> None:
    """Its end is not of it."""
    times = {Origin(ALONE): Observations([20, 30], [1, 1]), Origin(Stack((SCORE,))): Observations([50, 10], [1, 1])}
    [profile] = in_request(sent(of(times)))
    assert (profile.time_unix_nano, profile.duration_nano) == (10, 41)


def test_a_sample_without_a_span_has_no_link() -> None:
    """It names the empty entry."""
    [profile] = in_request(sent(of({Origin(ALONE): Observations([1], [1])})))
    assert profile.samples[0].link_index == 0


def test_the_id_of_a_profile_is_that_of_its_key() -> None:
    """What is sent twice is one profile; two profiles have two ids."""
    one = {Origin(ALONE): Observations([1], [1])}
    first, second = in_request(sent(of(one), of(one, "b")))
    assert first.profile_id != second.profile_id
    assert {len(first.profile_id), len(second.profile_id)} == {16}
    assert in_request(sent(of(one)))[0].profile_id == first.profile_id


def test_a_large_profile_is_sent_in_several_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """None is larger than receivers accept, none has an empty profile, and nothing is lost."""
    monkeypatch.setattr(profiles, "FULL", 20_000)
    monkeypatch.setattr(profiles, "TOGETHER", 500)
    stacks = [Stack((ProfileFrame("jvm", f"a.B.c{number}" * 20, "B.java", 1), MAIN)) for number in range(40)]
    many = {Origin(stack): Observations([*range(1, 1001)], [7] * 1000) for stack in stacks}
    found = list(requests([of(many), of(many, "b")], RESOURCE))
    assert len(found) > 10
    assert max(request.ByteSize() for request in found) < 40_000
    assert sum(map(len, map(values, found))) == 80_000
    assert all(profile.samples for request in found for profile in in_request(request))
    ids = [profile.profile_id for request in found for profile in in_request(request)]
    assert len(set(ids)) == len(ids)


def test_the_estimated_size_is_no_less_than_that_of_the_message() -> None:
    """Else a request could be larger than receivers accept."""
    stacks = [
        Stack((ProfileFrame("jvm", f"a.Bä.c{number}", f"B{number}.java", number), MAIN)) for number in range(1000)
    ]
    request = profiles._Request(RESOURCE)
    empty = request.message.ByteSize()
    request.begin(of({}), 0)
    for number, stack in enumerate(stacks):
        origin = Origin(stack, SpanLink(2**127 + number, 2**63 + number), (("spark.stage.id", number),))
        request.add(origin, Observations([1_800_000_000_000_000_000], [9_000_000_000_000]))
    assert request.message.ByteSize() - empty < request.size < 4 * request.message.ByteSize()


def test_no_profiles_are_no_request() -> None:
    """Nothing is sent of an application without samples."""
    assert list(requests([], RESOURCE)) == []
