"""Explains in words why a history of transactions is not serializable, as Elle does: by a cycle of dependencies.

Transactions append values to lists and set registers, none of them twice, so that what one has read tells whose writes
it saw; the tables' own updates tell in which order each item got its versions. From that follow dependencies:

    ww   one made an item's next version after another
    wr   one read a version that another had made
    rw   one read a version of which another made the next
    rt   one was answered before another began                                (strict serializability only)

A history is as if the transactions had happened one after the other if these have no cycle; one is named by Adya's
names: G0 of ww alone, G1c with wr, G-single with one rw, G2 with more. Before that come what no order can explain:

    G1a       a value was read that a transaction wrote that was rolled back
    G1b       what was read is no version of the item: some of a transaction's writes, or those of several versions
    internal  a transaction does not see its own writes
    lost      a value of a committed transaction was never written, or twice, or not with its others
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

Item = tuple[str, int]
"""A list or register: its table and key."""

Log = Mapping[Item, Sequence[tuple[int, int, int]]]
"""The updates of items: value, time, diff."""


@dataclass
class Transaction:
    """A transaction that was run.

    Attributes:
        name: What to call it.
        begun: When it was begun, by a clock that all share.
        ended: When its end was answered.
        committed: Whether it did; None if nobody knows.
        reads: What it read of items, with its own writes of each until then, as values and diffs.
        writes: Its writes that it did not take back, as values and diffs by item, in order.
        undone: Values that it took back.
    """

    name: str
    begun: int = 0
    ended: int = 0
    committed: bool | None = False
    reads: list[tuple[Item, Sequence[int], Counter[int]]] = field(default_factory=list)
    writes: dict[Item, Counter[int]] = field(default_factory=dict)
    undone: set[int] = field(default_factory=set)

    def __str__(self) -> str:
        return self.name


def violations(transactions: Sequence[Transaction], log: Log, *, strict: bool = True) -> Iterator[str]:
    """Yields a sentence for each thing that is wrong; nothing if the history is (strictly) serializable."""
    found = [*_unexplainable(transactions, log)]
    yield from found
    if not found:
        yield from _cycles(transactions, _versions(transactions, log), strict=strict)


def _unexplainable(transactions: Sequence[Transaction], log: Log) -> Iterator[str]:
    written = {(item, value, diff): time for item, updates in log.items() for value, time, diff in updates}
    often = Counter((item, value, diff) for item, updates in log.items() for value, _, diff in updates)
    for (_, value, diff), count in often.items():
        if count > 1:
            yield f"lost: {value} was written {count} times with the diff {diff}"
    for one in transactions:
        asked = [(item, value, diff) for item, own in one.writes.items() for value, diff in own.items() if diff]
        missing = [each for each in asked if each not in written]
        if one.committed and missing:
            yield f"lost: {one} committed, and {missing} were never written"
        times = {written[each] for each in asked if each in written}
        if one.committed and len(times) > 1:
            yield f"lost: what {one} wrote took effect at several times, {sorted(times)}"
        gone = {value for _, value, diff in asked if diff > 0} if one.committed is False else one.undone
        for item, updates in log.items():
            for value, _, _ in updates:
                if value in gone:
                    yield f"G1a: {value} is in {item}, and {one} took it back"
        for item, values, own in one.reads:
            seen = Counter(values)
            for value, diff in own.items():
                if seen[value] != max(diff, 0):
                    yield f"internal: {one} wrote {value} to {item} with the diff {diff}, and read {sorted(values)}"


@dataclass
class _Version:
    values: Counter[int]
    writer: Transaction | None


def _versions(transactions: Sequence[Transaction], log: Log) -> dict[Item, list[_Version]]:
    writers = {
        (item, value, diff): one
        for one in transactions
        if one.committed is not False
        for item, own in one.writes.items()
        for value, diff in own.items()
        if diff
    }
    versions: dict[Item, list[_Version]] = {}
    for item, updates in log.items():
        by_time: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        for value, time, diff in updates:
            by_time[time].append((value, diff))
        versions[item] = [_Version(Counter(), None)]
        for time in sorted(by_time):
            values = versions[item][-1].values.copy()
            for value, diff in by_time[time]:
                values[value] += diff
            who = {id(w): w for value, diff in by_time[time] if (w := writers.get((item, value, diff))) is not None}
            versions[item].append(_Version(+values, next(iter(who.values()), None)))
    return versions


def _cycles(
    transactions: Sequence[Transaction], versions: Mapping[Item, Sequence[_Version]], *, strict: bool
) -> Iterator[str]:
    edges: dict[tuple[int, int], tuple[str, str]] = {}
    nodes = {id(one): one for one in transactions if one.committed is not False}

    def add(kind: str, first: Transaction | None, then: Transaction | None, why: str) -> None:
        if first is not None and then is not None and first is not then:
            edges.setdefault((id(first), id(then)), (kind, f"{first} -{kind}-> {then}: {why}"))

    for item, each in versions.items():
        for older, newer in pairwise(each):
            add("ww", older.writer, newer.writer, f"both wrote {item}")
    for one in transactions:
        if one.committed is False:
            continue
        for item, values, own in one.reads:
            external = Counter(values)
            external.subtract(own)
            external = +external
            known = versions.get(item, [_Version(Counter(), None)])
            places = [place for place, version in enumerate(known) if version.values == external]
            if not places:
                yield f"G1b: {one} read {sorted(values)} of {item}, which was never what it held"
            if len(places) != 1:
                continue  # which of several equal versions it was nobody can tell
            add("wr", known[places[0]].writer, one, f"of {item}, {sorted(values)}")
            after = known[places[0] + 1 :]
            if after:
                add("rw", one, after[0].writer, f"read {sorted(values)} of {item}, which that changed")
    graph: dict[object, set[object]] = {key: set() for key in nodes}
    for first, then in edges:
        if first in nodes and then in nodes:
            graph[then].add(first)
    if strict:
        _add_real_time(graph, nodes)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        yield _named(error.args[1], edges, nodes)


def _add_real_time(graph: dict[object, set[object]], nodes: Mapping[int, Transaction]) -> None:
    """Adds that what was answered comes before what began later, by a chain of moments between them."""
    events = sorted(
        [(one.ended, 1, key) for key, one in nodes.items()] + [(one.begun, 0, key) for key, one in nodes.items()]
    )
    moment: object = None
    for number, (_, ends, key) in enumerate(events):
        if ends:
            later = ("moment", number)
            graph[later] = {key} | ({moment} if moment is not None else set())
            moment = later
        elif moment is not None:
            graph[key].add(moment)


def _named(
    cycle: Iterable[object], edges: Mapping[tuple[int, int], tuple[str, str]], nodes: Mapping[int, Transaction]
) -> str:
    known = [one for one in cycle if isinstance(one, int)]
    steps, kinds = [], []
    for one, then in pairwise(known):
        answered = f"{nodes[one]} -rt-> {nodes[then]}: it was answered before that began"
        kind, why = edges.get((one, then), ("rt", answered))
        kinds.append(kind)
        steps.append(why)
    reversing = kinds.count("rw")
    name = "G0" if {*kinds} <= {"ww"} else "G1c" if not reversing else "G-single" if reversing == 1 else "G2"
    return f"{name}{' with real time' if 'rt' in kinds else ''}: {'; '.join(steps)}"
