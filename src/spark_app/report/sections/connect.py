"""Clients of a Spark Connect server: who asked for what, how long it waited and ran, and what each user cost."""

from collections import defaultdict
from dataclasses import dataclass

from spark_app.eventlog import cost
from spark_app.eventlog.model import work_names
from spark_app.eventlog.model.connect import Operation, SessionKey
from spark_app.report import parts
from spark_app.report.formatting import instant
from spark_app.report.limits import Limits
from spark_app.report.scope import Scope
from spark_app.report.values import DIGITS, whole
from spark_app.settings import Prices


@dataclass(frozen=True, slots=True)
class ClientSession:
    """A session with its listed operations; times in milliseconds, `ended` None where its end is not known."""

    user: str
    id: str
    started: int
    ended: int | None
    operations: list[parts.Operation]

    @property
    def failed(self) -> int:
        """How many of its listed operations failed."""
        return sum(each.status == "failed" for each in self.operations)


class Connect(parts.Connect, kw_only=True):
    """The clients of the document, with what only a page draws; `total` counts all operations."""

    sessions: list[ClientSession]
    total: int
    currency: str | None


def connect(scope: Scope, limits: Limits, prices: Prices | None) -> Connect | None:
    """The users of a server, and the failed and the longest of their operations; None without clients.

    A run of a pipeline has no clients.
    """
    known = scope.app.connect
    if scope.run is not None or not known.sessions:
        return None
    ranked = sorted(known.operations.values(), key=lambda each: (each.status != "failed", -_duration(scope, each)))
    numbers = _queries(scope)
    kept = sorted(ranked[: limits.operations], key=lambda each: each.started)
    shown = {each.id: _operation(each, numbers[each.id]) for each in kept}
    return Connect(
        users=_users(scope, prices),
        operations=list(shown.values()),
        sessions=_sessions(scope, kept, shown),
        total=len(known.operations),
        currency=prices.currency if prices and prices.has_any else None,
    )


def _sessions(scope: Scope, kept: list[Operation], shown: dict[str, parts.Operation]) -> list[ClientSession]:
    """The sessions in the order of their starts, those without a listed operation left out."""
    own = defaultdict[SessionKey, list[parts.Operation]](list)
    for operation in kept:
        own[operation.session].append(shown[operation.id])
    known = scope.app.connect.sessions.values()
    sessions = sorted((each for each in known if each.key in own), key=lambda each: each.started)
    return [ClientSession(each.user, each.key.id, each.started, each.ended, own[each.key]) for each in sessions]


def _queries(scope: Scope) -> dict[str, list[int]]:
    """The numbers of the SQL executions of each operation, without those within another one."""
    numbers = defaultdict[str, list[int]](list)
    for query in scope.queries:
        if query.operation is not None and query.root is None:
            numbers[query.operation.id].append(query.id)
    return numbers


def _duration(scope: Scope, operation: Operation) -> float:
    """Until it had run; its client may have fetched the result later."""
    return (scope.period.end if operation.finished is None else operation.finished) - operation.started


def _operation(operation: Operation, queries: list[int]) -> parts.Operation:
    statement, launched, finished = operation.statement, operation.first_task, operation.finished
    return parts.Operation(
        id=operation.id,
        user=operation.session.user or None,
        session=operation.session.id,
        name=work_names.of_operation(operation),
        kind=statement.kind,
        sql=statement.sql,
        call_site=work_names.of_client(operation),
        status=operation.status,
        error=operation.error if operation.status == "failed" else None,
        started=instant(operation.started),
        duration_ms=None if finished is None else whole(finished - operation.started),
        prepare_ms=whole(operation.prepare_ms),
        wait_ms=whole(operation.wait_ms),
        run_ms=None if finished is None or launched is None else whole(finished - launched),
        rows=operation.rows,
        queries=queries,
    )


def _users(scope: Scope, prices: Prices | None) -> list[parts.ClientUser]:
    """The users, those whose tasks took most first; at the end what no user is known for."""
    took = cost.spent(scope.app, scope.period.start, scope.period.end)
    shares = {} if took is None else cost.by_user(scope.app, scope.stages, took)
    names = {key.user for key in scope.app.connect.sessions} | shares.keys()
    ranked = sorted(names, key=lambda user: (not user, -(shares[user].core_hours if user in shares else 0), user))
    return [_user(scope, user, shares.get(user), prices) for user in ranked]


def _user(scope: Scope, user: str, share: cost.CoreHours | None, prices: Prices | None) -> parts.ClientUser:
    known = scope.app.connect
    own = [each for each in known.operations.values() if each.session.user == user]
    price = share.price(prices) if share and prices else None
    return parts.ClientUser(
        user=user or None,
        sessions=sum(key.user == user for key in known.sessions),
        operations=len(own),
        failed_operations=sum(each.status == "failed" for each in own),
        wait_ms=sum(each.wait_ms or 0 for each in own),
        core_hours=None if share is None else share.core_hours,
        gib_hours=None if share is None else share.gib_hours,
        price=None if price is None else round(price, DIGITS),
    )
