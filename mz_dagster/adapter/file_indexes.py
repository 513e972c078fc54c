"""Which indexes of plain views the objects of a project's files read: those that the files define.

See `kept_views`. What is new or changes reads the indexes that stand in the files with it, wherever; what stays is
planned as the catalog has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mz_dagster.adapter.definition import Definable, define
from mz_dagster.adapter.file_ids import file_id, name_of_file_id
from mz_dagster.adapter.kept_views import Kept, KeptViews, contents, reading
from mz_dagster.adapter.project_files import ProjectFiles, ProjectObject
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.relation import Relation
from mz_dagster.plan.resolver import Item, Resolver
from mz_dagster.sql import CreateView, parse
from mz_dagster.sql.schemas import key_of


def with_indexes_first(objects: Sequence[ProjectObject]) -> Iterator[ProjectObject]:
    """Yields objects, each after those it reads, and each view's indexes directly behind it."""
    indexes: dict[GlobalId, list[ProjectObject]] = {}
    for one in objects:
        if (on := _kept_by(one)) is not None:
            indexes.setdefault(on.id, []).append(one)
    for one in objects:
        if _kept_by(one) is None:
            yield one
            yield from indexes.get(file_id(one.name), ())


def indexed(files: ProjectFiles) -> tuple[ProjectObject, ...]:
    """Returns the objects of a project that is not applied yet, as they will be, each after those it reads."""
    indexes, found = FileIndexes(files), []
    for one in with_indexes_first(files.objects):
        found.append(indexes.over(one))
        indexes.note(one)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class FileNames:
    """Resolves names to what files define."""

    items: Mapping[str, Item]

    def resolve(self, name: tuple[str, ...]) -> Item | None:
        """Returns what a name stands for."""
        return self.items.get(key_of(name[0], name[1]) if len(name) == 2 else name[-1])

    def names(self) -> tuple[str, ...]:
        """Returns all names in use."""
        return tuple(self.items)


@dataclass(slots=True)
class FileIndexes:
    """The indexes of plain views among a project's objects, which are noted each after those it reads."""

    files: ProjectFiles
    _noted: dict[GlobalId, ProjectObject] = field(default_factory=dict)
    _items: dict[str, Item] = field(default_factory=dict)
    _indexes: dict[GlobalId, GlobalId] = field(default_factory=dict)

    def note(self, one: ProjectObject) -> None:
        """Notes an object that there will be, as it is without indexes."""
        id = file_id(one.name)
        self._noted[id] = one
        self._items[one.name] = self.files.altered.get(one.name) or one.definition.item(id)
        if (on := _kept_by(one)) is not None:
            self._indexes.setdefault(on.id, id)

    def over(self, one: ProjectObject) -> ProjectObject:
        """Returns an object that reads the indexes of its views, given as it is without."""
        indexes = self._indexes
        if one.definition.plan is None or {file_id(view.name) for view in one.views}.isdisjoint(indexes):
            return one

        def kept(view: GlobalId) -> Kept:
            reached = {view, *(file_id(nested.name) for nested in self._noted[view].views)}
            return {
                id: contents(self._items[name_of_file_id(id)], indexes[id], name_of_file_id(indexes[id]))
                for id in reached & indexes.keys()
            }

        (statement,) = parse(one.definition.text)
        assert isinstance(statement, Definable), "nothing else is in files"
        names = KeptViews(FileNames(self._items), kept, self._bound)
        return replace(one, definition=reading(one.definition, statement, names))

    def _bound(self, view: GlobalId, over: Callable[[Resolver], Resolver]) -> Relation:
        """Returns the plan of a plain view, bound with what is made of the resolver of its names."""
        made = self._noted[view].definition
        (statement,) = parse(made.text)
        assert isinstance(statement, CreateView)
        names = over(FileNames(self._items))
        relation = define(statement, names, default_timeline=str(made.timeline), name=made.name).relation
        assert relation is not None, "it is a view"
        return relation


def _kept_by(one: ProjectObject) -> Item | None:
    """Returns the plain view that an object is an index of; None if it is none."""
    on = one.definition.on
    return on if one.definition.kind == "index" and on is not None and on.expansion is not None else None
