"""Which versions of what sinks write belong together, for readers of several tables that are to see one moment.

Each sink stands at a time of its own: one that is held up, or slow, stays behind. Let T be the earliest of those at
which the sinks of a timeline stand. What each has written says which version has what its view held at T, and these
versions are what the views of one transaction of the project would be `AS OF` T, whoever reads them and how much later.

    mz_internal.mz_sink_versions    each sink with the time at which it stands, T, and the versions of both
    outputs.manifest in mz.toml     a file or an object of JSON with T and the versions, for those that ask no database

The file follows from the catalog and the tables alone. It is written after a step has sealed where its sinks stand, and
takes the place of the one before at once; whoever is killed before that leaves that one, which says what was true and
still is. Where a sink has no version for T, because it was written anew since, there is none that belongs together, and
the file stays as it was until the others have come so far.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from mz_dagster.adapter.catalog_definitions import CatalogDefinitions, called
from mz_dagster.adapter.copy_to_file import FileNotWritten, written_whole
from mz_dagster.adapter.project import Project
from mz_dagster.catalog import Catalog
from mz_dagster.errors import Error, one_line
from mz_dagster.formalism import GlobalId
from mz_dagster.storage.object_store import ObjectStore
from mz_dagster.storage.sink.sink import Sink
from mz_dagster.storage.stored_object import StoredObject

logger = logging.getLogger("mz_dagster.sinks")


@dataclass(frozen=True, slots=True)
class SinkVersions:
    """What a sink has written.

    Attributes:
        id: The sink.
        name: What it is called.
        timeline: Of its times.
        place: Where it writes.
        tick: The time at which it stands; None before it has written anything.
        version: The version that has what its view held then; None if that cannot be told.
        common_tick: The latest time at which all sinks of the timeline stood; None if one has written nothing.
        common_version: The version that has what its view held then; None if there is none.
    """

    id: GlobalId
    name: str
    timeline: str
    place: str
    tick: int | None
    version: int | None
    common_tick: int | None
    common_version: int | None


def sink_versions(catalog: Catalog, definitions: CatalogDefinitions) -> Iterator[SinkVersions]:
    """Yields what each sink has written; what cannot be told, because a store is away for example, is None."""
    rows = catalog.objects("sink")
    stands: dict[GlobalId, int | None] = {}
    common: dict[str, int | None] = {}
    for row in rows:
        one = catalog.collection(row.id)
        tick = stands[row.id] = one.upper.only - 1 if one.is_hydrated else None
        timeline = str(row.timeline)
        known = common.setdefault(timeline, tick)
        common[timeline] = None if tick is None or known is None else min(tick, known)
    for row in rows:
        sink, timeline = definitions.sink(row), str(row.timeline)
        tick, earliest = stands[row.id], common[timeline]
        version = _version(sink, tick)
        at_earliest = version if earliest == tick else _version(sink, earliest)
        yield SinkVersions(row.id, called(row), timeline, sink.place, tick, version, earliest, at_earliest)


def _version(sink: Sink, time: int | None) -> int | None:
    try:
        return None if time is None else sink.version_at(time)
    except Error as error:
        logger.warning("%s", one_line(error))
        return None


def write_manifest(project: Project, catalog: Catalog, definitions: CatalogDefinitions) -> None:
    """Writes which versions belong together, where settings say; a timeline of which that cannot be told stays.

    Args:
        project: The project, which names the file, or none.
        catalog: Its catalog.
        definitions: What that holds.

    Raises:
        FileNotWritten: It cannot be written; what was there is as it was.
        ObjectUnreachable: The store of it cannot be reached.
    """
    if project.manifest is None:
        return
    by_timeline: dict[str, list[SinkVersions]] = {}
    for one in sink_versions(catalog, definitions):
        by_timeline.setdefault(one.timeline, []).append(one)
    place = project.manifest_path() or _object(project, definitions)
    if place is None:
        if by_timeline:
            raise FileNotWritten(
                f'could not write "{project.manifest}": no connection "{project.manifest_connection}" leads there',
                hint='CREATE CONNECTION of that name, or name another one by outputs.connection in "mz.toml".',
            )
        return
    before = _timelines_of(place.read() if isinstance(place, StoredObject) else _content(place))
    timelines: dict[str, object] = {}
    for name, sinks in sorted(by_timeline.items()):
        if all(one.common_version is not None for one in sinks):
            tables = {one.name: {"place": one.place, "version": one.common_version} for one in sinks}
            timelines[name] = {"tick": sinks[0].common_tick, "sinks": tables}
        elif name in before:
            timelines[name] = before[name]
    if timelines == before:
        return
    said = {"project": project.name, "timelines": timelines}
    content = json.dumps(said, indent=2, ensure_ascii=False).encode() + b"\n"
    if isinstance(place, StoredObject):
        place.write(content)
        return
    with written_whole(place) as file:
        file.write(content)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _object(project: Project, definitions: CatalogDefinitions) -> StoredObject | None:
    """Returns the object of a store that the manifest is, None if the connection to it is not there."""
    uri, connection = project.manifest or "", project.manifest_connection or ""
    item = definitions.resolve(tuple(connection.split(".")))
    store = None if item is None else item.means
    if not isinstance(store, ObjectStore) or uri.partition("://")[0] not in store.schemes:
        return None
    return StoredObject(uri, store, project.root)


def _timelines_of(content: bytes) -> Mapping[str, object]:
    """Returns what a manifest says of each timeline; nothing if it is none."""
    try:
        found = json.loads(content)["timelines"]
    except (ValueError, TypeError, KeyError):
        return {}
    return found if isinstance(found, dict) else {}
