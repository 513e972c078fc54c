"""Ticks and bindings: at which times a timeline closes, and what each source contains there.

A tick and the bindings that belong to it are minted in one transaction, so that whoever sees the tick
sees what every source gained by it. Ticks only grow; a file is bound at most once per source, and for good, but that an
open binding may end as if it had never been. A tick at which nothing can be read any more is forgotten, so there are
never more than retention keeps.

Of a binding at tick T of a source with since S and upper U:

    U <= T           open     a step has yet to read its files: they must be there, as they were bound
    S <= T < U       sealed   its records are in the shard: the files may go, but what is there must be as it was bound
    T < S            retired  nobody looks at the files again; their paths stay known, so that none is bound twice
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from mz_dagster.catalog.codec import frontier_of
from mz_dagster.catalog.database import Transactions, in_portions
from mz_dagster.catalog.errors import CatalogDamaged, FileAlreadyBound
from mz_dagster.catalog.rows import Binding, BoundFile, Leadership, LeadershipLost, Offset, TickMinted, TickMoved
from mz_dagster.catalog.schema import BOUND, BOUND_FILE, BOUND_OFFSET, COLLECTION, TICK
from mz_dagster.catalog.timelines import advance_oracle, lattice_of, leads, timeline_row
from mz_dagster.errors import ProgrammingError
from mz_dagster.fail_point import fail_point
from mz_dagster.formalism import GlobalId

#: After every tick.
_LATEST = (1 << 63) - 1

_FILE, _OFFSET = BOUND_FILE.c, BOUND_OFFSET.c

#: Built once: building a statement takes longer than running it.
_LAST = select(func.max(TICK.c.tick)).where(TICK.c.timeline == bindparam("timeline"))
_MINT = insert(TICK)
_MORE_FILES = (
    update(COLLECTION)
    .where(COLLECTION.c.id == bindparam("the_id"))
    .values(bound_files=COLLECTION.c.bound_files + bindparam("more"))
)
_TICKS = (
    select(TICK.c.tick)
    .where(TICK.c.timeline == bindparam("timeline"), TICK.c.tick >= bindparam("lower"))
    .order_by(TICK.c.tick.desc())
)
_FILES = (
    select(BOUND_FILE)
    .where(_FILE.source == bindparam("source"), _FILE.tick >= bindparam("lower"), _FILE.tick < bindparam("until"))
    .order_by(_FILE.tick, _FILE.position)
)
_OFFSETS = select(BOUND_OFFSET).where(
    _OFFSET.source == bindparam("source"), _OFFSET.tick >= bindparam("lower"), _OFFSET.tick < bindparam("until")
)
_OFFSETS_IN_ORDER = _OFFSETS.order_by(_OFFSET.tick)
_LAST_OFFSET = _OFFSETS.order_by(_OFFSET.tick.desc()).limit(1)
_LAST_GAIN = select(func.max(_FILE.tick)).where(_FILE.source == bindparam("source"))
_SAID = select(COLLECTION.c.bound_files).where(COLLECTION.c.id == bindparam("source"))
_FOUND = select(func.count()).where(BOUND.c.source == bindparam("source"))
_KNOWN_PATHS = select(_FILE.path).where(
    _FILE.source == bindparam("source"), _FILE.path.in_(bindparam("paths", expanding=True))
)


class Ticks(Transactions):
    """The part of the catalog that closes times and binds external data to them."""

    def mint_tick(
        self,
        timeline: str,
        tick: int,
        bindings: Mapping[GlobalId, Sequence[BoundFile]],
        expected_last: int | None,
        offsets: Mapping[GlobalId, Offset] = MappingProxyType({}),
    ) -> TickMinted | TickMoved:
        """Closes a timeline at `tick`, binds files and offsets to it and applies it to the oracle, all or nothing.

        Args:
            timeline: The timeline to close.
            tick: The time; must be greater than the last tick and than the oracle's read timestamp.
            bindings: The files that each source gains, in reading order; sources that gain none may be left out.
            expected_last: The last tick that the caller knows of.
            offsets: Up to where each source of another transport is read.

        Returns:
            `TickMoved`, and nothing has happened, if the last tick is another one or `tick` is not beyond both.

        Raises:
            FileAlreadyBound: A file is part of its source already.
        """
        fail_point("tick.before_mint")
        with self._database.write() as connection:
            read_ts = int(timeline_row(connection, timeline).read_ts)
            last = _last_tick(connection, timeline)
            if last != expected_last or (last is not None and tick <= last) or tick <= read_ts:
                return TickMoved(timeline, last, read_ts)
            connection.execute(_MINT, {"timeline": timeline, "tick": tick})
            rows = [
                {
                    "source": source,
                    "path": file.path,
                    "tick": tick,
                    "position": position,
                    "size": file.size,
                    "sha256": file.sha256,
                    "identity": file.identity,
                }
                for source, files in bindings.items()
                for position, file in enumerate(files)
            ]
            _check_unbound(connection, bindings)
            reached = [
                {"source": source, "tick": tick, "value": json.dumps(offset, sort_keys=True)}
                for source, offset in offsets.items()
            ]
            for table, bound in ((BOUND_FILE, rows), (BOUND_OFFSET, reached)):
                if bound:
                    connection.execute(insert(table), bound)
            if rows or reached:
                more = {source: len(files) for source, files in bindings.items()} | dict.fromkeys(offsets, 1)
                gains = [{"the_id": source, "more": count} for source, count in more.items()]
                connection.execute(_MORE_FILES, gains)
            advance_oracle(connection, timeline, tick)
        fail_point("tick.minted")
        return TickMinted(timeline, tick)

    def unbind(self, source: GlobalId, paths: Sequence[str], leadership: Leadership) -> int | LeadershipLost:
        """Ends open bindings of a source, at whose ticks nothing of it is sealed, so that it has not read these files.

        Whoever has read bindings under an earlier leadership cannot seal any more what they make.

        Args:
            source: The source.
            paths: Files; those whose bindings are not open stay bound.
            leadership: The lead of its timeline.

        Returns:
            How many bindings ended; they count as never bound.
        """
        file, ended = BOUND_FILE.c, 0
        with self._database.write() as connection:
            if not leads(connection, leadership):
                return LeadershipLost(leadership.timeline, leadership.epoch)
            text = connection.execute(select(COLLECTION.c.upper).where(COLLECTION.c.id == source)).scalar_one()
            upper = frontier_of(lattice_of(connection, leadership.timeline), text).only
            for portion in in_portions(paths):
                open_ = delete(BOUND_FILE).where(file.source == source, file.tick >= upper, file.path.in_(portion))
                ended += connection.execute(open_).rowcount
            fewer = {"bound_files": COLLECTION.c.bound_files - ended}
            connection.execute(update(COLLECTION).where(COLLECTION.c.id == source).values(fewer))
        return ended

    def ticks(self, timeline: str, newest: int | None = None, *, lower: int = 0) -> tuple[int, ...]:
        """Returns the ticks of a timeline at or beyond `lower`, ascending; only the `newest` so many if given."""
        query = _TICKS if newest is None else _TICKS.limit(newest)
        with self._database.read() as connection:
            found = connection.execute(query, {"timeline": timeline, "lower": lower}).scalars().all()
            if not found:
                timeline_row(connection, timeline)  # which is an error if it was never declared
        return tuple(reversed(found))

    def forget_ticks(self, timeline: str) -> int:
        """Removes the ticks before every since of the timeline, but never its last one; returns how many they were."""
        with self._database.write() as connection:
            last = _last_tick(connection, timeline)
            sinces = select(COLLECTION.c.since).where(COLLECTION.c.timeline == timeline)
            lattice = lattice_of(connection, timeline)
            times = [time for text in connection.execute(sinces).scalars() for time in frontier_of(lattice, text)]
            kept = min([*times, last or 0])
            return connection.execute(delete(TICK).where(TICK.c.timeline == timeline, TICK.c.tick < kept)).rowcount

    def last_tick(self, timeline: str) -> int | None:
        """Returns the last tick of a timeline, or None."""
        with self._database.read() as connection:
            last = _last_tick(connection, timeline)
            if last is None:
                timeline_row(connection, timeline)  # which is an error if it was never declared
        return last

    def bindings(self, source: GlobalId, lower: int = 0, upper: int | None = None) -> tuple[Binding, ...]:
        """Returns the bindings of a source with `lower <= tick < upper`, by tick; those of nothing are left out."""
        wanted = {"source": source, "lower": lower, "until": _LATEST if upper is None else upper}
        with self._database.read() as connection:
            rows = connection.execute(_FILES, wanted).all()
            reached = connection.execute(_OFFSETS_IN_ORDER, wanted).all()
        found = [
            Binding(source, tick, tuple(map(_file_of, group)))
            for tick, group in groupby(rows, key=lambda row: int(row.tick))
        ]
        return tuple(sorted([*found, *map(_reaching, reached)], key=lambda one: one.tick))

    def last_binding(self, source: GlobalId, before: int | None = None) -> Binding | None:
        """Returns the last binding of a source whose transport has offsets, or the last one before a tick; or None."""
        wanted = {"source": source, "lower": 0, "until": _LATEST if before is None else before}
        with self._database.read() as connection:
            row = connection.execute(_LAST_OFFSET, wanted).first()
        return None if row is None else _reaching(row)

    def bound_files(self, source: GlobalId) -> Mapping[str, BoundFile]:
        """Returns every file that was ever bound to a source, by path.

        None is ever forgotten, however far since is: a file without its row would be new to the next poll if it came
        back, and its records would be there twice. So there are as many rows as files; who polls asks for those of the
        last ticks (`bindings`), and of which of the files that are there were bound before (`known_paths`).
        """
        with self._database.read() as connection:
            rows = connection.execute(select(BOUND_FILE).where(BOUND_FILE.c.source == source)).all()
        return {row.path: _file_of(row) for row in rows}

    def known_paths(self, source: GlobalId, paths: Sequence[str]) -> frozenset[str]:
        """Returns those of the paths under which a file was ever bound to a source.

        Raises:
            CatalogDamaged: Not all, and bindings of the source are lost: what seems new may have been read before.
        """
        with self._database.read() as connection:
            known = frozenset(path for portion in _bound(connection, source, paths) for path in portion)
            if len(known) < len(set(paths)):
                _check_bindings(connection, source)
            return known

    def last_path(self, source: GlobalId, tick: int) -> str:
        """Returns the last path, as bytes sort, of the files that a source had gained by a tick; empty for none."""
        file = BOUND_FILE.c
        path = file.path.collate("BINARY" if self._database.is_sqlite else "C")
        query = select(func.max(path)).where(file.source == source, file.tick <= tick)
        with self._database.read() as connection:
            return str(connection.execute(query).scalar_one() or "")

    def last_gain(self, source: GlobalId) -> int:
        """Returns the last tick at which a source gained files; 0 for none."""
        with self._database.read() as connection:
            return last_gain(connection, source) or 0

    def check_bindings(self, source: GlobalId) -> None:
        """Returns if all bindings of a source are there; who is about to bind more asks.

        Raises:
            CatalogDamaged: Some are lost: what seems new may have been read before.
        """
        with self._database.read() as connection:
            _check_bindings(connection, source)

    def note_identities(self, source: GlobalId, identities: Mapping[str, str]) -> None:
        """Records what bound files look like that were hashed again and found as they were, by path."""
        if not identities:
            return
        file = BOUND_FILE.c
        with self._database.write() as connection:
            connection.execute(
                update(BOUND_FILE)
                .where(file.source == source, file.path == bindparam("the_path"))
                .values(identity=bindparam("seen")),
                [{"the_path": path, "seen": seen} for path, seen in identities.items()],
            )


def last_gain(connection: Connection, source: GlobalId) -> int | None:
    """Returns the last tick at which a source gained files; None for none."""
    found: int | None = connection.execute(_LAST_GAIN, {"source": source}).scalar_one()
    return found


def _last_tick(connection: Connection, timeline: str) -> int | None:
    found: int | None = connection.execute(_LAST, {"timeline": timeline}).scalar_one()
    return found


def _check_unbound(connection: Connection, bindings: Mapping[GlobalId, Sequence[BoundFile]]) -> None:
    for source, files in bindings.items():
        paths = [file.path for file in files]
        if len(set(paths)) != len(paths):
            raise ProgrammingError(f'a binding of "{source}" lists a file twice')
        for found in _bound(connection, source, paths):
            if found:
                raise FileAlreadyBound(
                    f'file "{found[0]}" is bound to "{source}" already',
                    hint="Drop new data as a new file; a bound file is never read again.",
                )


def _check_bindings(connection: Connection, source: GlobalId) -> None:
    said = connection.execute(_SAID, {"source": source}).scalar()
    found = connection.execute(_FOUND, {"source": source}).scalar_one()
    if said is not None and said != found:
        raise CatalogDamaged(
            f'the catalog has lost what source "{source}" has read',
            detail=f"It should know {said} bindings, and knows {found}; what was read would be read again.",
        )


def _bound(connection: Connection, source: GlobalId, paths: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yields those of the paths that are bound, in portions, because databases bound the number of parameters."""
    for portion in in_portions(paths):
        yield connection.execute(_KNOWN_PATHS, {"source": source, "paths": portion}).scalars().all()


def _reaching(row: Any) -> Binding:
    return Binding(GlobalId(row.source), int(row.tick), offset=json.loads(row.value))


def _file_of(row: Any) -> BoundFile:
    return BoundFile(row.path, row.size, row.sha256, row.identity)
