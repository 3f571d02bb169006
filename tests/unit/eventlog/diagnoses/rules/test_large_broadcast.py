from tests.unit.eventlog.diagnoses.plans import GIB, MIB, Node, application, found, node, ran


def test_a_broadcast_costs_what_the_driver_does_for_it() -> None:
    """To build and to send; not to collect."""
    times: Node = {"time_to_build": 20_000, "time_to_broadcast": 4000, "time_to_collect": 50_000}
    plan = node("BroadcastExchange", data_size=2 * GIB, number_of_output_rows=7, **times)
    (finding,) = found(application(ran(1, plan)), "large_broadcast")
    assert finding.cost_ms == 24_000
    assert finding.numbers == {"broadcast_bytes": 2 * GIB, "broadcast_rows": 7}


def test_a_broadcast_that_is_cheap_or_small_is_none() -> None:
    """Without times there is no cost, but a finding; with small ones there is none."""
    untold = ran(1, node("BroadcastExchange", data_size=2 * GIB))
    small = ran(2, node("BroadcastExchange", data_size=100 * MIB, time_to_build=20_000))
    cheap = ran(3, node("BroadcastExchange", data_size=2 * GIB, time_to_build=900))
    assert [finding.cost_ms for finding in found(application(untold), "large_broadcast")] == [None]
    assert not found(application(small, cheap), "large_broadcast")


def test_what_filled_a_cache_is_not_found_again_when_the_cache_is_read() -> None:
    """Its numbers are the driver's, and stand in every plan that reads the cache."""
    sent = node("BroadcastExchange", node("Range", number_of_output_rows=7), data_size=2 * GIB)
    filling = node("InMemoryTableScan", node("Project", sent))
    app = application(ran(1, filling), ran(2, filling, counts=node("Project")))
    assert [finding.query for finding in found(app, "large_broadcast")] == [1]
