"""What is computed from other collections, and how it comes to hold them (items 83 to 89).

`maintain` creates views by right of read capabilities on their inputs, in one transaction. From then on the catalog
itself holds the two constraints between each output `o` and each input `i` of its own:

    W:   upper(o) <= upper(i)                    validated by every seal (`frontiers.check_inputs`)
    R:   since(i) <= since(o), upper(o) - 1      limits of what `allow_compaction` moves (`frontiers`)

so that the next step can still tell what is new from what was before.

What holds them is a row of `hold` for each pair, a capability that never expires, is downgraded as the output
advances, and goes with the output; so the capabilities that were presented can be dropped once `maintain` has returned.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select

from mz_dagster.catalog.capabilities import Capabilities, needing_read, validated
from mz_dagster.catalog.errors import FrontierNotHeld, InputNotHeld
from mz_dagster.catalog.frontiers import frontiers
from mz_dagster.catalog.objects import check_new, create_rows
from mz_dagster.catalog.rows import NewObject, ReadCapability
from mz_dagster.catalog.schema import HOLD
from mz_dagster.formalism import GlobalId


class Maintaining(Capabilities):
    """Is the part of the catalog that lets collections be computed from others."""

    def maintain(
        self, reads: Sequence[str], new: Sequence[NewObject], *, holder: str, ttl_ms: int | None
    ) -> tuple[ReadCapability, ...]:
        """Creates objects that are computed from what the read capabilities are on, and returns one on each output.

        Args:
            reads: The tokens of read capabilities, one at least on every collection that the new ones are computed
                from.
            new: The objects; since and upper of all that have a collection are the one time at which all inputs are
                read first. Those without an owner are the outputs.
            holder: Who asks, in words that help to find it.
            ttl_ms: How long the capabilities returned last unless renewed, in milliseconds; None for until they are
                dropped.

        Raises:
            InputNotHeld: Of an input there is no capability.
            FrontierNotHeld: The time is before what a capability holds, or one of the inputs is not known until there.
            UnknownCapability: A token denotes nothing.
            CapabilityExpired: A capability's lease ran out.
            WrongRight: A capability grants writing.
            NameTaken: A name denotes something already, or is used twice.
            UnknownObject: A dependency does not exist, or was dropped.
            WrongDefinition: A description contradicts itself.
        """
        check_new(new)
        with self._database.write() as connection:
            held = {}
            for token in reads:
                one = needing_read(validated(connection, token, self._now_ms()))
                held[one.collection] = one
            ids = create_rows(connection, new)
            edges = connection.execute(select(HOLD.c.output, HOLD.c.input).where(HOLD.c.output.in_(ids))).all()
            known = frontiers(connection, {GlobalId(id) for edge in edges for id in edge})
            for output, input in edges:
                if input in ids:
                    continue
                if input not in held:
                    raise InputNotHeld(input)
                since, upper = known[output]
                if not (held[input].frontier <= since and upper <= known[input][1]):
                    raise FrontierNotHeld(
                        f'"{input}" cannot be read at {since} by right of capability "{held[input].label}"',
                        detail=f"It holds {held[input].frontier}, and what is beyond {known[input][1]} is not known.",
                        hint="Start the view where all capabilities hold their collections, and all are known.",
                    )
            outputs = [id for id, one in zip(ids, new, strict=True) if one.owner is None and one.has_collection]
            at = frontiers(connection, outputs)
            return tuple(self._read(connection, id, at[id][0], holder, ttl_ms) for id in outputs)
