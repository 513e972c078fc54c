"""What the commits of a table's log say that they changed.

Let rows(v) be the multiset of a table's rows at version v. A commit v holds either the change data of

    rows(v) - rows(v - 1)

or the files that it adds and removes, of whose rows that is the difference, or both; then its change data is read if
that is sure to be all, since some writers leave rows out. Files that are marked with `dataChange` false only hold
elsewhere what was there before (OPTIMIZE, compaction), so they cancel and are never read. Sums over several commits add
up, and what is added and removed again within them cancels as a whole file.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from deltalake.exceptions import DeltaError

from mz_dagster.storage.source.delta.data_files import row_count
from mz_dagster.storage.source.delta.table_schema import DeltaColumns, check_protocol
from mz_dagster.storage.source.errors import SourceUnreadable, VersionsLost
from mz_dagster.storage.table_place import TablePlace, commit_path, reason


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file of which a commit adds or removes the rows, or which holds changed rows itself.

    Attributes:
        path: Relative to the table's folder.
        partition: The values of the partition columns, by the names that files would have for them.
        vector: Which deletion vector it has, None if it has none.
        holds_changes: Whether its rows say themselves what became of them.
        size: In bytes.
        version: One at which it is part of the table.
    """

    path: str
    partition: tuple[tuple[str, str | None], ...]
    vector: str | None = None
    holds_changes: bool = False
    size: int = field(default=0, compare=False)
    version: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit of a table's log.

    Attributes:
        version: Which.
        digest: Of its bytes.
        files: The files that change rows, each with +1 if it adds its rows and -1 if it removes them.
        schema: The table's columns from here on, if it says so.
    """

    version: int
    digest: str
    files: Sequence[tuple[ChangedFile, int]]
    schema: DeltaColumns | None


def newest_version(table: TablePlace, known: int) -> int:
    """Returns the newest version of a table, of which a version is known; costs one look for each newer one."""
    while table.exists(commit_path(known + 1)):
        known += 1
    return known


def digest_of(table: TablePlace, version: int) -> str | None:
    """Returns the digest of a commit, None if it is not in the log any more.

    Raises:
        SourceUnreadable: It is there and cannot be read.
    """
    try:
        return hashlib.sha256(_content(table, version)).hexdigest()
    except FileNotFoundError:
        return None


def commits(table: TablePlace, first: int, last: int) -> Iterator[Commit]:
    """Yields the commits of some versions.

    Raises:
        VersionsLost: One of them is not in the log any more.
        SourceUnreadable: One cannot be read.
        UnknownFeature: From one on, the table asks of its readers what this one does not know.
    """
    for version in range(first, last + 1):
        try:
            content = _content(table, version)
        except FileNotFoundError:
            detail = f"Commit {version} is not in the log any more."
            raise versions_lost(table, first, last, detail) from None
        try:
            yield _commit(table, version, content)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise SourceUnreadable(
                f'commit {version} of Delta table "{table}" is damaged',
                detail=f"It is {len(content)} bytes: {type(error).__name__}: {error}.",
                hint="Have whoever writes the table mend its log; nothing was read.",
            ) from error


def net_files(found: Sequence[Commit]) -> Mapping[ChangedFile, int]:
    """Returns the files whose rows make the difference of all commits, with how often they count."""
    net: Counter[ChangedFile] = Counter()
    for commit in found:
        for file, sign in commit.files:
            net[file] += sign
    return {file: count for file, count in net.items() if count}


def versions_lost(table: TablePlace, first: int, last: int, detail: str) -> VersionsLost:
    """Returns the error that what some versions changed cannot be told any more."""
    versions = f"version {first}" if first == last else f"versions {first} to {last}"
    return VersionsLost(f'{versions} of Delta table "{table}"', detail)


def _content(table: TablePlace, version: int) -> bytes:
    try:
        return table.read(commit_path(version))
    except FileNotFoundError:
        raise
    except (OSError, DeltaError) as error:
        raise SourceUnreadable(
            f'cannot read commit {version} of Delta table "{table}": {reason(error)}',
            hint="Make the table's folder readable for this user; nothing was bound, and the next poll tries again.",
        ) from error


def _commit(table: TablePlace, version: int, content: bytes) -> Commit:
    actions = [json.loads(line) for line in content.decode().splitlines() if line.strip()]
    schema: DeltaColumns | None = None
    moved: list[tuple[ChangedFile, int]] = []
    changed: list[tuple[ChangedFile, int]] = []
    said: object = None
    for action in actions:
        if (protocol := action.get("protocol")) is not None:
            check_protocol(str(table), protocol["minReaderVersion"], protocol.get("readerFeatures") or ())
        elif (meta := action.get("metaData")) is not None:
            schema = DeltaColumns.of(str(table), meta["id"], meta["schemaString"], meta.get("configuration") or {})
        elif "commitInfo" in action:
            said = action["commitInfo"]
        elif (file := action.get("cdc")) is not None:
            changed.append((_file(table, file, version, holds_changes=True), 1))
        elif (file := action.get("add")) is not None and file["dataChange"]:
            moved.append((_file(table, file, version), 1))
        elif (file := action.get("remove")) is not None and file["dataChange"]:
            moved.append((_file(table, file, version - 1), -1))
    files = changed if changed and _is_whole(table, said, changed) else moved
    return Commit(version, hashlib.sha256(content).hexdigest(), files, schema)


def _is_whole(table: TablePlace, said: object, changed: Sequence[tuple[ChangedFile, int]]) -> bool:
    """Returns whether the change data of a commit is all that it changes, by what the commit says of itself.

    Of delta-rs's `UPDATE` it has no row that is there both before and after, however often on each side; then it has
    fewer rows than two for each that was updated. Of writers that are not known here it may be anything.
    """
    if not isinstance(said, dict):
        return False
    engine, operation = str(said.get("engineInfo")), said.get("operation")
    if engine.startswith("delta-rs:") and operation == "UPDATE":
        metrics = said.get("operationMetrics")
        updated = metrics.get("num_updated_rows") if isinstance(metrics, dict) else None
        counts = [row_count(table, file.path) for file, _ in changed]
        return isinstance(updated, int) and None not in counts and sum(filter(None, counts)) == 2 * updated
    if engine.startswith("delta-rs:"):
        return operation in ("DELETE", "MERGE", "WRITE")
    return engine.startswith(("Apache-Spark/", "Databricks-Runtime/"))


def _file(table: TablePlace, action: Mapping[str, Any], version: int, *, holds_changes: bool = False) -> ChangedFile:
    path = unquote(action["path"])
    check_inside(table, path)
    vector = action.get("deletionVector")
    named = None if vector is None else f"{vector['storageType']}{vector['pathOrInlineDv']}@{vector.get('offset')}"
    partition = tuple(sorted((action.get("partitionValues") or {}).items()))
    if not all(value is None or isinstance(value, str) for _, value in partition):
        raise ValueError("values of partitions are texts")
    return ChangedFile(path, partition, named, holds_changes, int(action.get("size") or 0), version)


def check_inside(table: TablePlace, path: str) -> None:
    """Raises if a file of a table is elsewhere: whoever may write a log may not choose which other files are read.

    Raises:
        SourceUnreadable: It is.
    """
    if "://" in path or path.startswith("/") or not table.contains(path):
        raise SourceUnreadable(
            f'file "{path}" of Delta table "{table}" is outside of the table\'s folder',
            detail="A shallow clone has files of another table.",
            hint="Read that other table, or have this one copied with its files.",
        )
