"""Definitions kept between processes: what was bound and planned once is not bound and planned again.

A definition follows from a statement's text, from what the names in it stand for, and from the code that binds and
plans. So it is kept, in a folder of the project's state, under a digest of the text and of the code, together with each
name that the binder asked for and a digest of what that stood for; it is used again if they all stand for the same now.
What a plain view stands for is told by the digest of its own definition, and so on: no plan has to be walked.

Ids are no part of what a name stands for: they are kept beside it, and a definition that is used again where names have
other ids reads those. So what was planned of a project's files, in which objects are known by their names, is not
planned again once they are in the catalog and have ids. Where that differs, as over a table that was altered in place
and holds columns that its file no longer has, one is kept of the files' names and one of the catalog's.

A process that opens a project again and again keeps in memory what it has read, as long as the files are those. With a
definition that has a plan its digest is kept, by which the catalog knows that plan (`plan_digest`).

A file of the folder carries a digest of its content and is nothing but a hint: one that is missing, damaged or of other
code is made anew. Its content is a pickle, so it is read only from a folder that is closed to other users, and makes
nothing but values of this package and plain ones of Python's.
"""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import secrets
import stat
import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from mz_dagster.adapter.definition import Definition
from mz_dagster.adapter.plan_digest import plan_digest, remember_digest
from mz_dagster.budget import budget
from mz_dagster.clock import SYSTEM_CLOCK
from mz_dagster.disk import FileState, file_state, make_private_folder
from mz_dagster.formalism import GlobalId
from mz_dagster.garbage import without_collections
from mz_dagster.plan.relation import Relation
from mz_dagster.plan.resolver import Item, Resolver
from mz_dagster.recursion import allow_deep_calls
from mz_dagster.scalars.types import ScalarType
from mz_dagster.version import __version__

#: After how long what nobody has used goes, and how often its use is noted, in seconds.
_KEPT_S, _NOTED_S = 30 * 86_400, 86_400
_HEAD = b"mz_dagster definition 3\n"
_PLAIN = {
    "builtins": {"frozenset"},
    "datetime": {"date", "datetime", "time", "timedelta", "timezone"},
    "decimal": {"Decimal"},
    "uuid": {"UUID", "SafeUUID"},
}

#: The layers that bind and plan, and what they do so by.
_PLANNING = ("formalism", "scalars", "functions", "plan", "sql", "adapter")

#: So many definitions a process keeps in memory, and notes as many names.
_IN_MEMORY = 5_000

#: What a binder asked for: names, each with a digest of what it stood for, and the ids in that.
Asked = tuple[tuple[tuple[str, ...], str, tuple[GlobalId, ...]], ...]


def _members(type_: ScalarType) -> tuple[object, ...]:
    """Returns the values of the enumerations in a type, which it does not show."""
    own = type_.enumeration
    return (
        ()
        if own is None and not type_.parts
        else (own and (own.name, own.members, own.renamed), *map(_members, type_.parts))
    )


@dataclass(slots=True)
class _Read:
    """A definition that was read of a file.

    Attributes:
        file: What the file was known by.
        asked: What its binder asked for.
        definition: As it is kept.
        digest: That of its plan, if it has one.
        under: The ids that it was last used under, with what it is under those.
    """

    file: FileState
    asked: Asked
    definition: Definition
    digest: str | None
    under: tuple[Mapping[GlobalId, GlobalId], Definition] | None = None

    def definition_under(self, ids: Mapping[GlobalId, GlobalId]) -> Definition:
        """Returns the definition over objects that have other ids."""
        if self.under is None or self.under[0] != ids:
            self.under = ids, self.definition.under(ids)
        found = self.under[1]
        if found.plan is not None and self.digest is not None:
            remember_digest(found.plan, self.digest)
        return found


#: What this process has read last, by the files' paths.
_read_last: OrderedDict[Path, _Read] = OrderedDict()


class DefinitionCache:
    """Keeps definitions, for one process and for those that come after it.

    Args:
        state: The project's state; nothing is kept if that is not there, or open to other users.
        names: Whose names it binds: of each definition one is kept, which the others use if it fits.
    """

    def __init__(self, state: Path, names: Literal["files", "catalog"]) -> None:
        self._names: Sequence[str] = ("files", "catalog") if names == "files" else ("catalog", "files")
        self._folder = state / "definitions" if _is_private(state) else None
        self._is_made = False
        # By identity; the relation is kept, so that no other gets its own.
        self._views: dict[int, tuple[Relation, str, tuple[GlobalId, ...]]] = {}
        # The same of what a name stands for.
        self._items: dict[int, tuple[Item, str, tuple[GlobalId, ...]]] = {}

    def get(self, parts: tuple[object, ...], resolver: Resolver, make: Callable[[Resolver], Definition]) -> Definition:
        """Returns what `make` makes with the resolver, or made once.

        Args:
            parts: All else that the definition follows from; `repr` tells them apart.
            resolver: Answers what names stand for.
            make: Binds and plans.

        Raises:
            Error: `make` does.
        """
        key = _key(parts)
        for names in self._names:
            kept = self._read(key, names)
            if kept is not None and (ids := self._ids_now(kept.asked, resolver)) is not None:
                return self._known(key, _under(kept.asked, ids), kept.definition_under(ids))
        recording = RecordingResolver(resolver)
        definition = make(recording)
        found = self._asked(recording)
        return definition if found is None else self._keep(key, found, definition)

    def adopt(
        self, parts: tuple[object, ...], resolver: Resolver, bound_with: RecordingResolver, definition: Definition
    ) -> bool:
        """Keeps what was made with another resolver, if `get` would have the same made; returns whether it is kept.

        Args:
            parts: As `get`.
            resolver: As `get`.
            bound_with: What the definition was made with.
            definition: What was made.
        """
        asked = self._asked(bound_with)
        if asked is None or self._ids_now(asked, resolver) != {}:
            return False
        self._keep(_key(parts), asked, definition)
        return True

    def _asked(self, recording: RecordingResolver) -> Asked | None:
        """Returns what a binder asked for; None if a view that was not made here was among it."""
        told = [(name, self._digest(item)) for name, item in recording.asked.items()]
        found = tuple((name, *one) for name, one in told if one is not None)
        return found if len(found) == len(told) else None

    def _keep(self, key: str, asked: Asked, definition: Definition) -> Definition:
        self._write(key, asked, definition)
        return self._known(key, asked, definition)

    def _ids_now(self, asked: Asked, resolver: Resolver) -> dict[GlobalId, GlobalId] | None:
        """Returns the ids that are others now, by what they were; None if a name stands for something else."""
        now: dict[GlobalId, GlobalId] = {}
        try:
            for name, told, ids in asked:
                found = self._digest(resolver.resolve(name))
                if found is None or found[0] != told:
                    return None
                for before, id in zip(ids, found[1], strict=True):
                    if now.setdefault(before, id) != id:
                        return None
        except Exception:  # whoever binds finds out what is wrong, and where
            return None
        is_one_to_one = len(set(now.values())) == len(now)
        return {before: id for before, id in now.items() if before != id} if is_one_to_one else None

    def _known(self, key: str, asked: Asked, definition: Definition) -> Definition:
        if definition.kind == "view" and definition.relation is not None:
            told = _digest((key, tuple((name, one) for name, one, _ in asked)))
            ids = tuple(dict.fromkeys(id for _, _, ids in asked for id in ids))
            self._views[id(definition.relation)] = definition.relation, told, ids
        return definition

    def _digest(self, item: Item | None) -> tuple[str, tuple[GlobalId, ...]] | None:
        """Returns a digest of what a name stands for, and the ids in that; None of a view that was not made here."""
        if item is None:
            return "", ()
        if (noted := self._items.get(id(item))) is not None:
            return noted[1:]
        type_ = item.relation_type
        keys = sorted(sorted(key) for key in type_.keys)
        view, ids = None, tuple[GlobalId, ...]()
        if item.expansion is not None:
            if id(item.expansion) not in self._views:
                return None
            _, view, ids = self._views[id(item.expansion)]
        modifiers = [column.type.value_modifier for column in type_.columns]  # which the types do not show
        members = [_members(column.type) for column in type_.columns]
        told = (item.name, item.kind, type_.columns, modifiers, members, keys, type_.monotonic, item.timeline)
        stored = None if item.stored is None else (item.stored.columns, item.places)
        digest = _digest((*told, item.version, stored, item.values, view, item.means))
        if len(self._items) >= _IN_MEMORY:
            self._items.clear()
        self._items[id(item)] = item, digest, (item.id, *ids)
        return digest, (item.id, *ids)

    # ---- files

    def _read(self, key: str, names: str) -> _Read | None:
        """Returns what is kept under a key of the files' or the catalog's names, None if nothing can be used."""
        if self._folder is None or not _is_private(self._folder):
            return None
        path = self._folder / f"{key}.{names}"
        file = file_state(path)
        if file is None:
            return None
        if (known := _read_last.get(path)) is not None and known.file == file:
            return known
        try:
            content = path.read_bytes()
            head, told, body = content[: len(_HEAD)], content[len(_HEAD) :][:32], content[len(_HEAD) + 32 :]
            if head != _HEAD or hashlib.sha256(body).digest() != told:
                return None
            allow_deep_calls()
            with without_collections():
                asked, definition, digest = _RestrictedUnpickler(io.BytesIO(body)).load()
            if _age_s(path.stat()) > _NOTED_S:
                os.utime(path)
        except Exception:  # what cannot be used is made anew, whatever is wrong with it
            return None
        if not isinstance(definition, Definition):
            return None
        found = _Read(file, asked, definition, digest)
        if file.is_settled(SYSTEM_CLOCK.now_ms()):
            _read_last[path] = found
            while len(_read_last) > _IN_MEMORY:
                _read_last.popitem(last=False)
        return found

    def _write(self, key: str, asked: Asked, definition: Definition) -> None:
        """Keeps a definition, if that can be done."""
        if self._folder is None:
            return
        try:
            digest = None if definition.plan is None else plan_digest(definition.plan)
            body = pickle.dumps((asked, definition, digest), protocol=5)
            self._make(self._folder)
            if not _is_private(self._folder):
                return
            path = self._folder / f"{key}.{self._names[0]}"
            draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
            with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(_HEAD + hashlib.sha256(body).digest() + body)
            draft.replace(path)
        except (OSError, RecursionError, TypeError, pickle.PicklingError):
            return

    def _make(self, folder: Path) -> None:
        """Makes the folder, once in a process, and removes what nobody has used for long."""
        if self._is_made:
            return
        self._is_made = True
        make_private_folder(folder)
        with os.scandir(folder) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # another process has renamed its draft
                    if _age_s(entry.stat()) > _KEPT_S:
                        Path(entry.path).unlink()


def parts_of_query(text: str, timeline: str, name: str, *, is_copy: bool) -> tuple[object, ...]:
    """Returns what the definition of a view, a check or an index follows from, of a file and of the catalog alike.

    Args:
        text: Its statement's.
        timeline: Where it is if it reads nothing that says so.
        name: What the catalog calls it, or did when it was created.
        is_copy: Whether it is an index of what has another one.
    """
    return "query", text, timeline, name, is_copy


def _under(asked: Asked, ids: Mapping[GlobalId, GlobalId]) -> Asked:
    return tuple((name, told, tuple(ids.get(id, id) for id in own)) for name, told, own in asked)


class RecordingResolver:
    """A resolver that notes what it is asked.

    Attributes:
        asked: What each name stood for.
    """

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self.asked: dict[tuple[str, ...], Item | None] = {}

    def resolve(self, name: tuple[str, ...]) -> Item | None:
        """Returns what a name stands for."""
        found = self._resolver.resolve(name)
        self.asked[name] = found
        return found

    def names(self) -> tuple[str, ...]:
        """Returns all names in use."""
        return self._resolver.names()


class _RestrictedUnpickler(pickle.Unpickler):
    """Reads values of this package, and plain ones, and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        if name in _PLAIN.get(module, ()):
            return super().find_class(module, name)
        if module == "mz_dagster" or module.startswith("mz_dagster."):
            found = super().find_class(module, name)
            if isinstance(found, type):
                return found
        raise pickle.UnpicklingError(f"{module}.{name} is no part of a definition")


def _is_private(folder: Path) -> bool:
    """Returns whether a folder is there, and this user's alone."""
    try:
        status = os.stat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077


def _age_s(status: os.stat_result) -> float:
    return SYSTEM_CLOCK.now_ms() / 1000 - status.st_mtime


def _digest(parts: tuple[object, ...]) -> str:
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _key(parts: tuple[object, ...]) -> str:
    """Returns under which name what follows from these is kept, as this code plans it."""
    return _digest((_planner(), repr(budget()), *parts))


@cache
def _planner() -> str:
    """Returns a digest of the code that binds and plans, as far as its files' sizes and times tell it from other."""
    root = Path(__file__).parents[1]
    files = sorted(path for layer in _PLANNING for path in (root / layer).rglob("*.py"))
    stats = [(path.relative_to(root).as_posix(), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return _digest((__version__, metadata.version("sqlglot"), sys.version, str(root), stats))
