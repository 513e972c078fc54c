"""Which objects are still needed: the rule by which a dropped or replaced name takes objects with it.

An object is needed

- if a name denotes it, if somebody keeps it without one, by a lease, or if it never had one (an index only with what
  it indexes, an arrangement only as below);
- if a needed object depends on it (so a replaced view lives while an older dependant uses it, and a dropped
  index as long as a plan does);
- if it is an arrangement whose owner is needed, or one that nothing ever used.

Pure; `objects` applies it after every change of names, and drops what is not needed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from mz_dagster.formalism import GlobalId


@dataclass(frozen=True, slots=True)
class Entry:
    """What decides whether an object is needed.

    Attributes:
        id: Its id.
        kind: Its kind.
        name: The name that denotes it now, or None.
        created_as: The name it was created under, or None.
        owner: Its owner, or None.
        dependencies: What it depends on.
        was_used: Whether anything, even if dropped since, ever depended on it.
        is_kept: Whether somebody with a live lease keeps it, who is about to name it or knows it without.
    """

    id: GlobalId
    kind: str
    name: str | None
    created_as: str | None
    owner: GlobalId | None
    dependencies: Collection[GlobalId]
    was_used: bool = False
    is_kept: bool = False


def needed(entries: Mapping[GlobalId, Entry], doomed: Collection[GlobalId] = ()) -> frozenset[GlobalId]:
    """Returns the ids of the needed objects among `entries`, which holds all that are not dropped.

    Args:
        entries: All objects that are not dropped.
        doomed: Objects that are not needed for their own sake, whatever their names.
    """
    reached: set[GlobalId] = set()

    def keep(id: GlobalId) -> None:
        if id in entries and id not in reached:
            reached.add(id)
            for dependency in entries[id].dependencies:
                keep(dependency)

    for entry in entries.values():
        if entry.id not in doomed and _is_root(entry):
            keep(entry.id)
    size = -1
    while size != len(reached):
        size = len(reached)
        for entry in entries.values():
            if entry.id in doomed or entry.kind not in ("index", "arrangement"):
                continue
            # Its own arrangements, and other indexes that it reads, go with an index, not the other way round.
            others = [one for one in entry.dependencies if one not in entries or not _goes_by(entries[one], entry)]
            if _goes_with(entry, others, reached):
                keep(entry.id)
    return frozenset(reached)


def _is_root(entry: Entry) -> bool:
    if entry.kind == "arrangement" and entry.name is None:
        return entry.owner is None and not entry.was_used and entry.created_as is None
    return entry.kind != "index" and (entry.name is not None or entry.created_as is None or entry.is_kept)


def _goes_by(one: Entry, entry: Entry) -> bool:
    return one.owner == entry.id or (one.kind == "index" and entry.kind == "index")


def _goes_with(entry: Entry, dependencies: Collection[GlobalId], reached: Collection[GlobalId]) -> bool:
    if entry.owner is not None and entry.owner in reached and (entry.name is not None or entry.created_as is None):
        return True
    return (
        entry.kind == "index"
        and (entry.name is not None or entry.is_kept)
        and all(one in reached for one in dependencies)
    )
