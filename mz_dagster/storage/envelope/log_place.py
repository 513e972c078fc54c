r"""Where in a database's log a change stands that Debezium writes, and whether a key has been told of it already.

Debezium writes each change at least once: a connector that is started again repeats what it wrote last, and who copies
its records may do so, too. Let a change of key k be a pair of the place in the log that its `source` block says, and of
the key's row behind it. Places of one log are compared; a change is *stale* if the last change of k that was applied

- is of the same log, and further on in it, and
- does not say an earlier time (`source.ts_ms`), as it would before a log that began anew: of a database that was
  restored, or whose place another one took.

What is stale is not applied, so a history with parts of it told again, from any place on, makes what it makes without.
What says no place, or none that can be compared, is applied where it comes.

This needs places that grow with the changes of *one key*, not with all: who changes a row waits for whoever changed it
before to commit. So logs in which transactions are interleaved will do, and records need to be in order by key alone,
as those of several partitions of a topic are.

A row that is read for a snapshot is no change. Its place is where the snapshot was taken, or what the connector had
come to; a transaction that was open then is told afterwards, from places before it. So a change is compared with the
last change alone, and is stale at its place, too, if the key was read since. A read is stale

- if the last change is further on, as above;
- if the key was read at a later time, or at the same one further on;
- if it is the last read, and a change has followed it.

Connectors, and what is compared:

    postgresql        lsn
    mysql, mariadb    the number of the transaction if there is a GTID, of those of one server; else file, pos and row
    sqlserver         commit_lsn, change_lsn, event_serial_no
    oracle            commit_scn (of a read its scn), scn

Of changes at one place the last that comes is applied, so those of one transaction with a GTID are as they are told.
Logs are one if connector and `name` (the prefix of topics) are, and the files' name or the GTID's server. MySQL's times
are those at which statements began: of one that waited for a lock, what it waited for told again may seem to be later.
Such a change is applied, until those behind it are told again, too.

What is remembered of a key is a text of JSON, whatever becomes of its row: state is of the size of the keys, those that
were deleted included. Runs on Spark's workers, which get this code by value.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from mz_dagster.functions.jsonb import jsonb

#: What stands for what is remembered behind a stale record.
STALE = ""


def place_of(change: dict[str, jsonb.Node]) -> str | None:
    """Returns the place that a change says, as a text; None if it says none that can be compared.

    Example:
        >>> place_of({"op": "c", "source": {"connector": "postgresql", "name": "shop", "lsn": "24", "ts_ms": "7"}})
        '[false, ["postgresql", "shop", ""], [24], 7]'
    """
    source = change.get("source")
    if type(source) is not dict:
        return None
    is_read = change.get("op") == "r"
    connector = source.get("connector")
    found: tuple[str, list[int | None]] | None
    match connector:
        case "postgresql":
            found = "", [_number(source.get("lsn"))]
        case "mysql" | "mariadb":
            found = _in_binlog(source)
        case "sqlserver":
            changed = [0, 0, 0] if is_read else _hexadecimals(source.get("change_lsn"))
            serial = 0 if is_read else _number(source.get("event_serial_no"))
            found = "", [*_hexadecimals(source.get("commit_lsn")), *changed, serial]
        case "oracle":
            scn = _number(source.get("scn"))
            found = "", [scn if is_read else _number(source.get("commit_scn")), scn]
        case _:
            return None
    log, place = found
    if None in place:
        return None
    name = source.get("name")
    said = [connector, name if isinstance(name, str) else "", log]
    return json.dumps([is_read, said, place, _number(source.get("ts_ms")) or 0])


def remembered(known: str | None, place: str) -> str | None:
    """Returns what is remembered of a key whose record is applied; None if the record is stale.

    Args:
        known: What was remembered of the key, None for nothing.
        place: Of the record.

    Example:
        >>> def place(lsn: int) -> str:
        ...     return json.dumps([False, ["postgresql", "shop", ""], [lsn], 7])
        >>> first = remembered(None, place(24))
        >>> remembered(first, place(23)), remembered(first, place(25)) is not None
        (None, True)
    """
    change: Any
    read: Any
    change, read, read_last = (None, None, False) if known is None else json.loads(known)
    is_read, *own = json.loads(place)
    if not is_read:
        return None if _is_behind(own, change, or_at=read_last) else json.dumps([own, read, False])
    is_stale = _is_behind(own, change) or _is_read_before(own, read, or_then=not read_last)
    return None if is_stale else json.dumps([change, own, True])


def remembered_one_by_one(known: str | None, places: Sequence[str | None]) -> list[str | None]:
    """Returns for each record of a key, in their order, what is remembered behind it; `STALE` for one that is that.

    None for a record without a place, which is applied and changes nothing that is remembered.
    """
    found: list[str | None] = []
    for place in places:
        after = None if place is None else remembered(known, place)
        found.append(STALE if after is None and place is not None else after)
        known = after or known
    return found


def _is_behind(own: list[Any], last: list[Any] | None, *, or_at: bool = False) -> bool:
    """Returns whether a place is before another one of its log, or perhaps at it, and says no later time."""
    if last is None:
        return False
    (log, place, time), (last_log, last_place, last_time) = own, last
    return bool(log == last_log and time <= last_time and (place < last_place or (or_at and place == last_place)))


def _is_read_before(own: list[Any], last: list[Any] | None, *, or_then: bool) -> bool:
    """Returns whether a row was read before another read of it, or perhaps with it."""
    if last is None:
        return False
    (log, place, time), (last_log, last_place, last_time) = own, last
    before, after = (time, place), (last_time, last_place)
    return bool(log == last_log and (before < after or (or_then and before == after)))


def _in_binlog(source: dict[str, jsonb.Node]) -> tuple[str, list[int | None]]:
    """Returns what is told from logs of MySQL and MariaDB with whose places it compares, and a place."""
    gtid = source.get("gtid")
    if isinstance(gtid, str):  # server:7, server:tag:7 or domain-server-7
        by_domain = ":" not in gtid
        server, _, transaction = gtid.rpartition("-" if by_domain else ":")
        return server.partition("-")[0] if by_domain else server, [_number(transaction)]
    file = source.get("file")
    base, _, number = file.rpartition(".") if isinstance(file, str) else ("", "", "")
    return base, [_number(number), _number(source.get("pos")), _number(source.get("row") or "0")]


def _number(value: jsonb.Node) -> int | None:
    """Returns the whole number that a member says, as itself or as text."""
    text = str(value)
    return int(text) if text.isascii() and text.isdigit() else None


def _hexadecimals(value: jsonb.Node) -> list[int | None]:
    """Returns the numbers of a log sequence number of SQL Server, as in `00000027:00000758:0005`."""
    try:
        return [int(one, 16) for one in str(value).split(":")]
    except ValueError:
        return [None]
