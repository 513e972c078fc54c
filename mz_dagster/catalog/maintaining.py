"""What is computed from other collections, and how it comes to hold them (items 83 to 89).

`maintain` creates views by right of read capabilities on their inputs, in one transaction. From then on the catalog
itself holds the two constraints between each output `o` and each input `i` of its own:

    W:   upper(o) <= upper(i)                    validated by every seal (`frontiers.check_inputs`)
    R:   since(i) <= since(o), upper(o) - 1      limits of what `allow_compaction` moves (`frontiers`)

so that the next step can still tell what is new from what was before.

What holds them is a row of `hold` for each pair, a capability that never expires, is downgraded as the output
advances, and goes with the output; so the capabilities that were presented can be dropped once `maintain` has returned.

A view is *written to* a `collection` by right of its write capability, which must be the only live one and is handed
over for good: the collection becomes the view, under its id, with its shard and its readers, and from then on the
engine writes it as any view. Its contents must be exactly the view's at every time that can be read, and it has none
before the view begins:

- it holds no updates yet;
- its upper is not beyond the time `t` at which the view begins, and moves there, as if its writer had said that there
  is nothing before;
- its since moves there, too, and no live read capability may stand before it;
- its timeline, columns and keys are as promised to its readers: a column that is never NULL there is none in the view,
  and each of its keys is one of the view.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from sqlalchemy import Connection, select

from mz_dagster.catalog.capabilities import Capabilities, hand_over, needing_read, validated
from mz_dagster.catalog.codec import frontier_of
from mz_dagster.catalog.errors import FrontierNotHeld, InputNotHeld, WrongDefinition
from mz_dagster.catalog.frontiers import IS_LIVE, collection_of, collections_query, frontiers
from mz_dagster.catalog.objects import check_new, create_rows
from mz_dagster.catalog.rows import BatchState, CollectionRow, NewObject, ReadCapability
from mz_dagster.catalog.schema import BATCH, CAPABILITY, COLLECTION, HOLD
from mz_dagster.formalism import Antichain


class Maintaining(Capabilities):
    """The part of the catalog that lets collections be computed from others."""

    def maintain(
        self,
        reads: Sequence[str],
        new: Sequence[NewObject],
        writes: Sequence[str | None] = (),
        *,
        holder: str,
        ttl_ms: int | None,
    ) -> tuple[ReadCapability, ...]:
        """Creates objects that are computed from what the read capabilities are on, and returns one on each output.

        Args:
            reads: The tokens of read capabilities, one at least on every collection that the new ones are computed
                from; all are read from one time on.
            new: The objects; since and upper of all that have a collection are the one time at which all inputs are
                read first. Those without an owner are the outputs.
            writes: The tokens of write capabilities on the collections that become the outputs, in their order; None,
                or too few of them, for outputs that are new collections.
            holder: Who asks, in words that help to find it.
            ttl_ms: How long the capabilities returned last unless renewed, in milliseconds; None for until they are
                dropped.

        Raises:
            InputNotHeld: Of an input there is no capability.
            FrontierNotHeld: The time is before what a capability holds, or one of the inputs is not known until there;
                or a collection to be written has another writer, or a reader before the time.
            UnknownCapability: A token denotes nothing.
            CapabilityExpired: A capability's lease ran out.
            WrongRight: A capability grants writing where reading is needed, or the other way round.
            NameTaken: A name denotes something already, or is used twice.
            UnknownObject: A dependency does not exist, or was dropped.
            WrongDefinition: A description contradicts itself, or the collection that it is to be written to.
        """
        check_new(new)
        outputs = [n for n, one in enumerate(new) if one.owner is None and one.has_collection]
        if len(writes) > len(outputs):
            raise WrongDefinition(
                f"there are {len(writes)} write capabilities for {len(outputs)} views",
                hint="Present them in the order of the views, at most one for each.",
            )
        with self._database.write() as connection:
            held = {}
            for token in reads:
                one = needing_read(validated(connection, token, self._now_ms()))
                held[one.collection] = one
            targets = {
                n: _taken_over(connection, token, new[n], self._now_ms())
                for n, token in zip(outputs, writes, strict=False)
                if token is not None
            }
            ids = create_rows(
                connection,
                [_written_to(targets[n], one) if n in targets else one for n, one in enumerate(new)],
                into={n: target.id for n, target in targets.items()},
            )
            inputs = select(HOLD.c.input).where(HOLD.c.output.in_(ids), HOLD.c.input.not_in(ids))
            if missing := set(connection.execute(inputs).scalars()) - held.keys():
                raise InputNotHeld(min(missing))
            made = [ids[n] for n in outputs]
            known = frontiers(connection, [*made, *held])
            for (since, upper), (input, one) in product((known[id] for id in made), held.items()):
                if not (one.frontier <= since and upper <= known[input][1]):
                    raise FrontierNotHeld(
                        f'"{input}" cannot be read at {since} by right of capability "{one.label}"',
                        detail=f"It holds {one.frontier}, and what is beyond {known[input][1]} is not known.",
                        hint="Start the view where all capabilities hold their collections, and all are known.",
                    )
            return tuple(self._read(connection, id, known[id][0], holder, ttl_ms) for id in made)


def _taken_over(connection: Connection, token: str, view: NewObject, now: int) -> CollectionRow:
    """Takes a collection from its only writer, to become a view, and returns it as it was.

    Raises:
        FrontierNotHeld: It has another writer, or it is known, forgotten or held to be readable where the view has yet
            to begin.
        WrongDefinition: It holds updates, or the view's are not what it was created for.
    """
    held = hand_over(connection, token, now)
    id = held.collection
    row = collection_of(connection.execute(collections_query().where(COLLECTION.c.id == id)).one())
    begin = Antichain.of(row.since.lattice, view.since)
    if view.timeline != row.timeline:
        raise WrongDefinition(
            f'"{view.name}" cannot be written to "{id}": their timelines differ',
            detail=f"The view is of {view.timeline}, and the collection of {row.timeline}.",
        )
    if not _keeps_promises(row, view):
        raise WrongDefinition(
            f'"{view.name}" cannot be written to "{id}": their columns or keys differ',
            detail=f"The view has {_described(view)}; the collection was created with {_described(row)}.",
            hint="Give the columns of the query these names, types and constraints, or create another collection.",
        )
    batch = BATCH.c
    live = select(batch.id).where(batch.collection == id, batch.state == BatchState.LIVE.value).limit(1)
    if connection.execute(live).first() is not None:
        raise WrongDefinition(
            f'"{view.name}" cannot be written to "{id}": it holds updates already',
            hint="Create an empty collection for it.",
        )
    if not (row.since <= begin and held.frontier <= begin):
        raise FrontierNotHeld(
            f'"{view.name}" cannot be written to "{id}" from {begin} on',
            detail=f"It is forgotten before {row.since}, and its writer had nothing to append before {held.frontier}.",
            hint="Downgrade a capability on an input, so that the view begins later.",
        )
    capability = CAPABILITY.c
    readers = select(CAPABILITY).where(capability.collection == id, ~capability.writes, IS_LIVE)
    for reader in connection.execute(readers.order_by(capability.id), {"now": now}):
        frontier = frontier_of(row.since.lattice, reader.frontier)  # type: ignore[arg-type]
        if not begin <= frontier:
            raise FrontierNotHeld(
                f'"{view.name}" cannot be written to "{id}" from {begin} on',
                detail=f'Capability "r{reader.id}" of {reader.holder} holds it to be readable from {frontier} on.',
                hint=f"Downgrade that to {begin}, which gives up nothing, since there are no rows before; or drop it.",
            )
    return row


def _keeps_promises(row: CollectionRow, view: NewObject) -> bool:
    """Returns whether a view's contents keep what the columns and keys of a collection promise."""
    return (
        len(row.columns) == len(view.columns)
        and all(
            called == its.name and one.type == its.type and (one.nullable or not its.nullable)
            for called, one, its in zip(row.names, row.columns, view.columns, strict=True)
        )
        and all(any(its <= key for its in view.keys) for key in row.keys)
    )


def _described(of: CollectionRow | NewObject) -> str:
    keys = (", ".join(of.columns[n].name for n in sorted(key)) for key in sorted(of.keys, key=sorted))
    return f"({', '.join((*map(str, of.columns), *(f'UNIQUE ({key})' for key in keys)))})"


def _written_to(row: CollectionRow, view: NewObject) -> NewObject:
    """Returns a view with what stays of the collection that becomes it."""
    retention_ms = row.retention_ms if view.retention_ms is None else view.retention_ms
    columns = tuple(replace(one, name=called) for one, called in zip(row.columns, row.names, strict=True))
    return replace(view, columns=columns, retention_ms=retention_ms)
