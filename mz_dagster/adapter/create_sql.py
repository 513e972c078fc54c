"""The statement that would create an object as it is now: the user's own text, under the names of today.

An object keeps the text that created it, and is bound to ids. Where it, or what it reads, has another name by now,
that name is written in the old one's place, and everything else is left as it was: a relation keeps its old name as an
alias.

Of a table that was altered since, a query means the columns that it had. Where the text alone does not say so any more,
new names are written in the place of old ones, an output keeps its old name; if even that means something else, because
of `*` or USING perhaps, a subquery that has the old columns stands in the table's place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from types import MappingProxyType

from mz_dagster.adapter.catalog_definitions import called
from mz_dagster.adapter.definition import define
from mz_dagster.adapter.engine import Engine
from mz_dagster.adapter.table_constraints import foreign_keys_of
from mz_dagster.catalog import ObjectRow, bound_shapes, stands_for
from mz_dagster.errors import Error, ProgrammingError, first_line
from mz_dagster.formalism import GlobalId
from mz_dagster.plan import lower_to_snapshot_plan, optimize
from mz_dagster.plan.lowering import snapshot_over_stored
from mz_dagster.plan.physical import identity
from mz_dagster.plan.resolver import Item
from mz_dagster.sql import (
    CreateCheck,
    CreateIndex,
    CreateMaterializedView,
    CreateSink,
    CreateSource,
    CreateTable,
    CreateView,
    Delta,
    Files,
    Iceberg,
    bind_definition,
    parse,
)
from mz_dagster.sql.connection_statements import CreateConnection, CreateSecret
from mz_dagster.sql.cursor import quoted
from mz_dagster.sql.declared_keys import SELF
from mz_dagster.sql.lexer import Token, TokenKind, tokens_of
from mz_dagster.sql.schemas import PUBLIC, key_of, schema_key, written
from mz_dagster.sql.statements import Name, Statement
from mz_dagster.sql.table_text import declared_foreign_key, with_foreign_keys

#: From one offset to another, what to write instead.
_Edit = tuple[int, int, str]


#: Yields those of some objects that have names, under these.
_Named = Callable[[Iterable[ObjectRow]], Iterator[ObjectRow]]


def _named_for_all(rows: Iterable[ObjectRow]) -> Iterator[ObjectRow]:
    return (one for one in rows if one.name is not None)


def create_sql(engine: Engine, row: ObjectRow, named: _Named = _named_for_all) -> str:
    """Returns the statement that would create an object anew.

    Args:
        engine: The project.
        row: The object.
        named: Which tables have names, and what these are, for whom it is shown.
    """
    try:
        edits = [*_edits(engine, row)]
    except ProgrammingError as error:  # as another release may have taken it
        return f"-- It does not bind, so its names are those of when it was created: {first_line(error)}\n{row.sql}"
    text = _with_foreign_keys(engine, row, _edited(row.sql, edits), named)
    renamed = _renamed_columns(engine, row)
    if not renamed:
        return text
    (statement,) = parse(row.sql)
    if isinstance(statement, CreateIndex):
        (names,) = renamed.values()
        return _edited(row.sql, [*edits, *_key_edits(row.sql, statement, names)])
    assert isinstance(statement, CreateView | CreateMaterializedView | CreateCheck)
    if _means_the_same(engine, row, text):
        return text
    written = _edited(row.sql, [*edits, *_column_edits(row.sql, statement, renamed)])
    if _means_the_same(engine, row, written):
        return written
    return _edited(row.sql, _edits(engine, row, renamed))


def _with_foreign_keys(engine: Engine, row: ObjectRow, text: str, named: _Named) -> str:
    """Returns the definition of a table with its foreign keys, which are kept beside it."""
    keys = foreign_keys_of(row) if row.kind == "table" else ()
    tables = {stands_for(one): one for one in named(engine.catalog.objects("table"))} if keys else {}
    listed = []
    for key in keys:
        parent = row if key.parent == SELF else tables.get(key.parent)
        if parent is not None:
            listed.append(declared_foreign_key(key, written(parent.schema, str(parent.name))))
    return with_foreign_keys(text, listed)


def _edited(text: str, edits: Iterable[_Edit]) -> str:
    for start, end, instead in sorted(edits, reverse=True):
        text = text[:start] + instead + text[end:]
    return text


def _renamed_columns(engine: Engine, row: ObjectRow) -> dict[GlobalId, dict[str, str]]:
    """Returns by each table that was altered since an object was bound to it: its columns of then, as they are now."""
    found: dict[GlobalId, dict[str, str]] = {}
    bound = bound_shapes(row.options)
    for id in {*row.dependencies.values()}:
        shapes = engine.catalog.object(id).shapes
        if shapes is not None and bound.get(id, 0) != shapes.version:
            then, now = shapes.versions[bound.get(id, 0)], shapes.versions[-1]
            called = dict(zip(now.places, (one.name for one in now.columns), strict=True))
            pairs = zip(then.places, then.columns, strict=True)
            found[id] = {one.name: called[place] for place, one in pairs if place in called}
    return found


def _means_the_same(engine: Engine, row: ObjectRow, text: str) -> bool:
    """Returns whether a text, bound to what there is now, computes what an object does, under the same names."""
    read = map(engine.catalog.object, row.dependencies.values())
    objects = {called(one): one for one in read if one.kind != "index"}
    now = _CurrentNames(engine, objects)
    try:
        (statement,) = parse(text)
        definition = define(
            statement,  # type: ignore[arg-type]  # it defines what the old one did
            now,
            default_timeline=row.timeline or engine.project.timeline,
        )
    except Error:
        return False
    before = engine.definitions.bound_definition_of(row)
    if definition.relation_type.names != before.relation_type.names:
        return False
    assert definition.relation is not None
    assert before.relation is not None
    stored = {one.id: engine.catalog.collection(one.id).columns for one in objects.values() if one.version}
    one, other = (
        snapshot_over_stored(lower_to_snapshot_plan(optimize(each)), stored)
        for each in (definition.relation, before.relation)
    )
    plans = [[*(shared.plan for shared in each.shared), each.output] for each in (one, other)]
    return len(plans[0]) == len(plans[1]) and all(
        identity(here) == identity(there) for here, there in zip(*plans, strict=True)
    )


@dataclass(frozen=True, slots=True)
class _CurrentNames:
    """Resolves names to what bears them now, of some objects."""

    engine: Engine
    objects: Mapping[str, ObjectRow]

    def resolve(self, name: tuple[str, ...]) -> Item | None:
        row = self.objects.get(name[-1])
        return (
            None
            if row is None
            else replace(self.engine.definitions.item(row.id, row.version, row.values), name=name[-1])
        )

    def names(self) -> tuple[str, ...]:
        return tuple(self.objects)


def _key_edits(text: str, statement: CreateIndex, names: Mapping[str, str]) -> Iterator[_Edit]:
    """Yields what writes the columns of an index under their names of today."""
    tokens = tokens_of(text)
    _, end = _span(tokens, statement.on.offset)
    for token in tokens:
        if token.start >= end and _is_name(token) and token.value in statement.columns:
            yield token.start, token.end, quoted(names[token.value])


def _column_edits(
    text: str,
    statement: CreateView | CreateMaterializedView | CreateCheck,
    renamed: Mapping[GlobalId, Mapping[str, str]],
) -> Iterator[_Edit]:
    """Yields what writes columns under their names of today, wherever an old one stands; whether that is right is seen.

    A column that is an item of a list of columns keeps its old name for those who read it.
    """
    names = {old: new for one in renamed.values() for old, new in one.items() if old != new}
    tokens = [one for one in tokens_of(text) if one.start >= statement.query.offset]
    for i, token in enumerate(tokens):
        behind = tokens[i + 1] if i + 1 < len(tokens) else token
        if not _is_name(token) or token.value not in names or behind.is_symbol("(", "."):
            continue
        first = i
        while first >= 2 and tokens[first - 1].is_symbol("."):
            first -= 2
        before = tokens[first - 1]
        if before.is_word("as"):
            continue
        is_item = before.is_word("select", "distinct") or before.is_symbol(",")
        is_last = behind.is_symbol(",") or behind.is_word("from")
        alias = f" AS {quoted(token.value)}" if is_item and is_last else ""
        yield token.start, token.end, quoted(names[token.value]) + alias


def _is_name(token: Token) -> bool:
    return token.kind in (TokenKind.WORD, TokenKind.QUOTED)


def _edits(
    engine: Engine, row: ObjectRow, renamed: Mapping[GlobalId, Mapping[str, str]] = MappingProxyType({})
) -> Iterator[_Edit]:
    """Yields what writes an object, and what it reads, under their names of today.

    Args:
        engine: The project.
        row: The object.
        renamed: For tables in whose place a subquery is to stand: their columns of then, as they are called now.
    """
    (statement,) = parse(row.sql)
    tokens = tokens_of(row.sql)
    assert isinstance(
        statement,
        CreateSource
        | CreateTable
        | CreateView
        | CreateMaterializedView
        | CreateIndex
        | CreateSink
        | CreateCheck
        | CreateSecret
        | CreateConnection,
    )
    assert row.name is not None, "what is shown was found by its name"
    if isinstance(statement, CreateIndex):  # it is in the schema of what it is on
        if statement.name is not None and key_of(row.schema, statement.name.last) != row.name:
            yield *_span(tokens, statement.name.offset), _unqualified(row)
    elif key_of(row.schema, statement.name.last) != row.name:
        yield *_span(tokens, statement.name.offset), written(row.schema, row.name)
    elif row.schema != PUBLIC and len(statement.name.parts) < 2:
        yield *_span(tokens, statement.name.offset), row.name
    if isinstance(statement, CreateView | CreateMaterializedView | CreateCheck):
        listed_columns = () if isinstance(statement, CreateCheck) else statement.columns
        resolver = engine.definitions.as_created(row)
        aliased: set[str] = set()
        for position, name in bind_definition(statement.query, listed_columns, resolver).uses:
            read = engine.catalog.object(row.dependencies[name])
            now = None if read.name is None else written(read.schema, read.name)
            start, end = _span(tokens, position - 1)
            last = name.rpartition(".")[2]
            if row.dependencies[name] in renamed:
                columns = renamed[row.dependencies[name]]
                listed = ", ".join(
                    quoted(column) if column == then else f"{quoted(column)} AS {quoted(then)}"
                    for then, column in columns.items()
                )
                alias = "" if _has_alias(tokens, end) else f" AS {quoted(last)}"
                aliased.add(last)
                yield start, end, f"(SELECT {listed} FROM {now or quoted(last)}){alias}"
                continue
            if now is not None and now not in (quoted(last), row.sql[start:end]):
                is_called_so = now.endswith(f".{quoted(last)}") or _has_alias(tokens, end)
                yield start, end, now if is_called_so else f"{now} AS {quoted(last)}"
                aliased |= set() if is_called_so else {last}
        yield from _unqualifying(tokens, aliased)
    for one in _named(statement):
        read = engine.catalog.object(row.dependencies[str(one)])
        now = None if read.name is None else written(read.schema, read.name)
        start, end = _span(tokens, one.offset)
        if now is not None and now not in (quoted(one.last), row.sql[start:end]):
            yield start, end, now
        if (
            isinstance(statement, CreateIndex)
            and statement.name is None
            and (read.name != one.last or row.name != row.created_as)
        ):
            before = next(token for token in tokens if token.is_word("on")).start
            yield before, before, f"{_unqualified(row)} "


def _connection(place: Files | Delta | Iceberg) -> tuple[Name, ...]:
    return () if place.connection is None else (place.connection,)


def _named(statement: Statement) -> tuple[Name, ...]:
    """Returns what a statement names outside of queries, types of columns aside."""
    match statement:
        case CreateSink():
            return (statement.on, *_connection(statement.delta))
        case CreateSource():
            return _connection(statement.origin)
        case CreateIndex() | CreateCheck():
            return () if statement.on is None else (statement.on,)
        case CreateConnection():
            return tuple(one for one in statement.options.values() if isinstance(one, Name))
        case _:
            return ()


def _unqualifying(tokens: tuple[Token, ...], aliased: Set[str]) -> Iterator[_Edit]:
    """Yields what takes the schema from columns of relations that have an alias, which are called by that."""
    for i in range(len(tokens) - 4):
        schema, dot, relation, other = tokens[i : i + 4]
        if _is_name(schema) and dot.is_symbol(".") and relation.value in aliased and other.is_symbol("."):
            yield schema.start, relation.start, ""


def _unqualified(row: ObjectRow) -> str:
    """Returns what SQL calls an object within its schema."""
    key = written(row.schema, str(row.name))
    return key if row.schema == PUBLIC else key.removeprefix(schema_key(row.schema))


def _span(tokens: tuple[Token, ...], start: int) -> tuple[int, int]:
    """Returns where the possibly qualified name that begins at an offset begins and ends."""
    at = next(i for i, token in enumerate(tokens) if token.start == start)
    while tokens[at + 1].is_symbol("."):
        at += 2
    return start, tokens[at].end


_NO_ALIAS = (
    "where", "group", "having", "window", "order", "limit", "offset", "fetch", "for", "union", "intersect", "except",
    "join", "inner", "left", "right", "full", "cross", "natural", "on", "using", "tablesample", "qualify", "options",
)  # fmt: skip


def _has_alias(tokens: tuple[Token, ...], end: int) -> bool:
    """Returns whether the relation whose name ends at an offset has an alias."""
    behind = next(token for token in tokens if token.start >= end)
    return behind.kind is TokenKind.QUOTED or (behind.kind is TokenKind.WORD and behind.value not in _NO_ALIAS)
