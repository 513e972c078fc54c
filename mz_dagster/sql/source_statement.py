"""`CREATE SOURCE`: columns, where records come from, what they say, and how they become updates."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Literal, NamedTuple

from mz_dagster.plan.representations import REPRESENTATIONS
from mz_dagster.sql.column_definitions import parse_columns
from mz_dagster.sql.cursor import TokenCursor
from mz_dagster.sql.declared_keys import UniqueKey
from mz_dagster.sql.errors import InvalidSyntax, InvalidTableDefinition
from mz_dagster.sql.lexer import Token, same_tokens, tokens_of
from mz_dagster.sql.options import Common, parse_source_options, parse_timeline, parse_with_options
from mz_dagster.sql.statements import ColumnDefinition, CreateSource, Delta, Files, Iceberg, Name


def parse_create_source(cursor: TokenCursor, common: Common) -> CreateSource:
    """Moves past what follows `CREATE SOURCE`.

    Raises:
        InvalidTableDefinition: A key without ENVELOPE UPSERT, which could not be guaranteed, or the reverse.
    """
    if_not_exists = cursor.accepts("if", "not", "exists")
    name = cursor.name()
    columns: tuple[ColumnDefinition, ...] = ()
    primary: UniqueKey | None = None
    if cursor.current.is_symbol("("):
        states_columns = not (cursor.ahead(1).is_word("primary") and cursor.ahead(2).is_word("key"))
        found = parse_columns(cursor, name.last, only_keys=True, states_columns=states_columns)
        columns, primary = tuple(found.columns), found.primary_key
    timeline = parse_timeline(cursor)
    if not columns and (not cursor.sees("from") or cursor.sees("from", "files")):
        raise cursor.unexpected("the columns in parentheses")
    cursor.expects("from")
    if cursor.sees("delta") or cursor.sees("iceberg"):
        table = parse_delta(cursor) if cursor.sees("delta") else _iceberg(cursor)
        envelope, key, _ = _keyed_envelope(cursor, columns, primary, "tables")
        start, retain = parse_source_options(cursor, "version" if isinstance(table, Delta) else "snapshot")
        if isinstance(table, Delta):
            table = replace(table, start_version=start)
        else:
            table = replace(table, start_snapshot=start)
        return CreateSource(*common, name, columns, key, timeline, table, envelope, retain, if_not_exists)
    if not cursor.sees("files"):
        raise cursor.refuse(
            "this kind of source",
            "FILES, DELTA and ICEBERG are known.",
            "Write FROM FILES (FOLDER '...'), FROM DELTA (URI '...') or FROM ICEBERG (TABLE '...', CONNECTION name).",
        )
    cursor.expects("files")
    place = _files(cursor)
    cursor.expects("format")
    format_ = _format(cursor)
    envelope, key, debezium = _keyed_envelope(cursor, columns, primary, format_)
    _check_partition(place, columns, key or ())
    retain = parse_with_options(cursor)
    pattern = place.pattern or _DEFAULT_PATTERNS[format_]
    partition = tuple(token.value for token in place.partition)
    files = Files(place.folder, pattern, format_, place.connection, debezium, partition, place.names_ascend)
    return CreateSource(*common, name, columns, key, timeline, files, envelope, retain, if_not_exists)


def _keyed_envelope(
    cursor: TokenCursor, columns: Sequence[ColumnDefinition], primary: UniqueKey | None, of: str
) -> tuple[Literal["none", "upsert"], tuple[str, ...] | None, bool]:
    """Moves past the envelope, and returns what it makes of records, its key, and whether they are Debezium's.

    Args:
        cursor: Where it stands.
        columns: Those declared.
        primary: The key among them.
        of: Of which format records are, or `tables`.

    Raises:
        InvalidTableDefinition: One of the two is there without the other, or cannot be a key.
    """
    envelope_at = cursor.current
    key = None if primary is None else primary.columns
    debezium = cursor.accepts("envelope", "debezium")
    if debezium and of not in ("json", "avro"):
        raise InvalidTableDefinition(
            f"ENVELOPE DEBEZIUM is not one of {of if of == 'tables' else of.upper()}",
            detail="Records that Debezium writes are read from files of JSON and of Avro.",
            hint="Write FORMAT JSON ENVELOPE DEBEZIUM, or FORMAT AVRO.",
            position=envelope_at.start + 1,
        )
    envelope = "upsert" if debezium else _envelope(cursor)
    if envelope == "upsert" and key is None:
        raise InvalidTableDefinition(
            f"ENVELOPE {'DEBEZIUM' if debezium else 'UPSERT'} requires a primary key",
            detail="The key says which earlier record a record replaces.",
            hint="Add PRIMARY KEY (...) to the columns.",
            position=envelope_at.start + 1,
        )
    if envelope == "none" and primary is not None:
        raise InvalidTableDefinition(
            "PRIMARY KEY requires ENVELOPE UPSERT",
            detail="Records that are only appended may repeat a key, so it cannot be guaranteed.",
            hint="Write ENVELOPE UPSERT, or leave the key away.",
            position=primary.offset + 1,
        )
    for column in columns:
        if column.name in (key or ()) and column.type.kind in REPRESENTATIONS:
            raise InvalidTableDefinition(
                f'column "{column.name}" of type {column.type} cannot be part of a key',
                detail="Records are matched by what is stored, and equal values are stored in several ways.",
                hint="Declare the column as text.",
                position=column.offset + 1,
            )
        if column.name in (key or ()) and column.type.array_element is not None:
            raise InvalidTableDefinition(
                f'column "{column.name}" of type {column.type} cannot be part of a key', position=column.offset + 1
            )
    return envelope, key, debezium


def _envelope(cursor: TokenCursor) -> Literal["none", "upsert"]:
    if cursor.accepts("envelope"):
        if cursor.accepts("upsert"):
            return "upsert"
        if not cursor.accepts("none"):
            raise cursor.refuse("this envelope", "Envelopes are NONE, UPSERT and DEBEZIUM.")
    return "none"


def parse_delta(cursor: TokenCursor, options: Callable[[], bool] = lambda: False) -> Delta:
    """Moves past `DELTA (URI '...' [, CONNECTION name])`.

    Args:
        cursor: Where it stands.
        options: Moves past another option, if one stands there, and returns whether one did.

    Raises:
        InvalidTableDefinition: What leads to it does not fit where it is.
    """
    cursor.expects("delta")
    cursor.expects_symbol("(")
    cursor.expects("uri")
    cursor.accepts_symbol("=")
    place = cursor.current
    uri = cursor.string("URI")
    if not uri:
        raise InvalidTableDefinition("DELTA requires a URI", position=place.start + 1)
    connection: Name | None = None
    while cursor.accepts_symbol(","):
        if not options():
            if connection is not None:
                raise cursor.refuse("this option", "What leads to a table was said.")
            cursor.expects("connection")
            cursor.accepts_symbol("=")
            connection = cursor.name()
    cursor.expects_symbol(")")
    store = _store_of(uri)
    in_store = store is not None
    if in_store and not re.fullmatch(r"\w+://[\w.-]+(/[\w.~=-]+)+/?", uri, re.ASCII):
        raise InvalidTableDefinition(
            f'"{uri}" names no table that is read',
            detail="Of paths in a bucket those are read that have letters of ASCII, digits, and . _ - ~ = in them.",
            hint="Write s3://bucket/path/of/table; a table under another name has to be moved first.",
            position=place.start + 1,
        )
    if in_store != (connection is not None):
        raise InvalidTableDefinition(
            f'"{uri}" {"needs a CONNECTION" if in_store else "is reached without a CONNECTION"}',
            hint=f"CREATE CONNECTION name TO {_STORES[store]} (...), and write DELTA (URI '...', CONNECTION name)."
            if store is not None
            else "Leave it away, or name a table at s3://, gs:// or az://.",
            position=place.start + 1,
        )
    return Delta(uri.rstrip("/") if in_store else uri, place.start, connection=connection)


#: What leads to object stores and web servers, by how URIs of what is there begin.
_STORES = {"s3": "S3", "gs": "GCS", "az": "AZURE"}
_WEB = {"https": "HTTP", "http": "HTTP"}


def _store_of(uri: str, stores: Mapping[str, str] = _STORES) -> str | None:
    """Returns how a URI begins that leads to a store; None if it is another."""
    scheme, separated, _ = uri.partition("://")
    return scheme if separated and scheme in stores else None


def _iceberg(cursor: TokenCursor) -> Iceberg:
    """Moves past `ICEBERG (TABLE 'namespace.table', CONNECTION name)`.

    Raises:
        InvalidTableDefinition: It is in no namespace.
    """
    cursor.expects("iceberg")
    cursor.expects_symbol("(")
    cursor.expects("table")
    cursor.accepts_symbol("=")
    place = cursor.current
    table = cursor.string("a table")
    if "." not in table or not all(table.split(".")):
        raise InvalidTableDefinition(
            f'"{table}" names no table of a catalog',
            hint="Write TABLE 'namespace.table', as the catalog calls it.",
            position=place.start + 1,
        )
    cursor.expects_symbol(",")
    cursor.expects("connection")
    cursor.accepts_symbol("=")
    connection = cursor.name()
    cursor.expects_symbol(")")
    return Iceberg(table, connection)


_Format = Literal["json", "csv", "parquet", "avro", "orc"]
_DEFAULT_PATTERNS: dict[_Format, str] = {
    "json": "*.jsonl",
    "csv": "*.csv",
    "parquet": "*.parquet",
    "avro": "*.avro",
    "orc": "*.orc",
}


def _format(cursor: TokenCursor) -> _Format:
    for format_ in _DEFAULT_PATTERNS:
        if cursor.accepts(format_):
            return format_
    raise cursor.refuse("this format", "Formats are JSON, CSV, PARQUET, AVRO and ORC.")


class _Found(NamedTuple):
    """What stands in the parentheses behind FILES."""

    folder: str
    pattern: str | None
    connection: Name | None
    partition: Sequence[Token]
    names_ascend: bool


def _files(cursor: TokenCursor) -> _Found:
    """Moves past `(FOLDER '...' | URI '...', CONNECTION name [, PATTERN '...'] ...)`: options in any order."""
    opening = cursor.current
    cursor.expects_symbol("(")
    found: dict[str, str] = {}
    connection: Name | None = None
    partition: list[Token] = []
    while True:
        token = cursor.current
        option = cursor.identifier("FOLDER, URI, CONNECTION, PATTERN, PARTITION COLUMNS or NAMES ASCEND")
        if option not in ("folder", "uri", "connection", "pattern", "partition", "names"):
            raise InvalidSyntax(f'"{option}" is not an option of FILES', position=token.start + 1)
        if option in found:
            raise InvalidSyntax(f"{option.upper()} is given twice", position=token.start + 1)
        cursor.accepts_symbol("=")
        value = cursor.current
        if option == "connection":
            connection = cursor.name()
            found[option] = str(connection)
        elif option == "partition":
            partition, found[option] = _partition(cursor), ""
        elif option == "names":
            cursor.expects("ascend")
            found[option] = ""
        else:
            found[option] = cursor.string(option.upper())
        if option == "pattern" and (found[option].startswith("/") or ".." in found[option].split("/")):
            raise InvalidTableDefinition(
                "PATTERN cannot leave the folder",
                detail="It is matched against paths relative to FOLDER.",
                hint="Name another FOLDER.",
                position=value.start + 1,
            )
        if option == "uri":
            _check_bucket(found[option], value.start)
        if cursor.accepts_symbol(")"):
            break
        cursor.expects_symbol(",")
    folder, uri = found.get("folder"), found.get("uri")
    if bool(folder) == bool(uri):
        raise InvalidTableDefinition(
            "FILES requires a FOLDER" if not folder else "FOLDER and URI exclude each other",
            hint="Write FOLDER '...' for a folder of this machine, and URI 's3://...', CONNECTION name for a bucket.",
            position=opening.start + 1,
        )
    if (uri is None) != (connection is None):
        kind = (_STORES | _WEB)[_store_of(uri or "", _STORES | _WEB) or "s3"]
        raise InvalidTableDefinition(
            "FOLDER is reached without a CONNECTION" if uri is None else f'"{uri}" needs a CONNECTION',
            hint=f"CREATE CONNECTION name TO {kind} (...), and write FILES (URI '...', CONNECTION name).",
            position=opening.start + 1,
        )
    if "names" in found and _store_of(uri or "") is None:
        raise InvalidTableDefinition(
            "NAMES ASCEND is about buckets",
            detail="A folder of this machine, and a list on a web server, is looked through in no time.",
            hint="Leave it away.",
            position=opening.start + 1,
        )
    return _Found(folder or uri or "", found.get("pattern"), connection, partition, "names" in found)


def _partition(cursor: TokenCursor) -> list[Token]:
    """Moves past `COLUMNS [=] (name, ...)`, and returns the tokens of the names."""
    cursor.expects("columns")
    cursor.accepts_symbol("=")
    cursor.expects_symbol("(")
    found = []
    while True:
        token = cursor.current
        found.append(token._replace(value=cursor.identifier("a column")))
        if cursor.accepts_symbol(")"):
            return found
        cursor.expects_symbol(",")


def _check_partition(found: _Found, columns: Sequence[ColumnDefinition], key: Sequence[str]) -> None:
    """Raises if folders cannot say the columns that they are to say."""
    by_name = {column.name: column for column in columns}
    names = [token.value for token in found.partition]
    for token in found.partition:
        column, why, hint = by_name.get(token.value), None, "Leave it away there."
        if column is None:
            why, hint = "is not declared", "Declare it with its type among the columns."
        elif names.count(token.value) > 1:
            why = "is listed twice"
        elif token.value in key:
            why, hint = "cannot be part of the key", "A record says its key itself, wherever its file is."
        elif column.type.array_element is not None:
            why, hint = (
                f"of type {column.type} cannot be said by a folder",
                "Declare it as text, and cast it in a view.",
            )
        if why is not None:
            raise InvalidTableDefinition(f'partition column "{token.value}" {why}', hint=hint, position=token.start + 1)
    if names and len(names) == len(columns):
        raise InvalidTableDefinition(
            "all columns are partition columns",
            hint="Declare a column that files have.",
            position=found.partition[0].start + 1,
        )


def _check_bucket(uri: str, offset: int) -> None:
    """Raises if a URI names no prefix of a bucket that is listed, and no list that a web server has."""
    form = r"\w+://[\w.-]+(/[^/]+)*/?"
    if _store_of(uri, _WEB) is not None:
        form = r"\w+://[\w.-]+(:\d+)?(/[\w.~%=+-]+)+"
    elif _store_of(uri) is None:
        form = ""
    if not re.fullmatch(form, uri, re.ASCII) or any(one in (".", "..") for one in uri.split("/")):
        raise InvalidTableDefinition(
            f'"{uri}" names no files that are read',
            detail="Files are read from folders of this machine, from object stores, and from lists on web servers.",
            hint="Write s3://bucket/path/of/files, or gs:// or az:// likewise, or https://host/path/of/list.txt.",
            position=offset + 1,
        )


def with_declared_columns(text: str, columns: str) -> str:
    """Returns the text of a CREATE SOURCE that states no columns, but perhaps a key, with these.

    Example:
        >>> with_declared_columns("CREATE SOURCE s (PRIMARY KEY (a)) FROM DELTA (URI 'lake/s')", "(a integer)")
        "CREATE SOURCE s (a integer, PRIMARY KEY (a)) FROM DELTA (URI 'lake/s')"
        >>> with_declared_columns("CREATE SOURCE s FROM DELTA (URI 'lake/s')", "(a integer)")
        "CREATE SOURCE s (a integer) FROM DELTA (URI 'lake/s')"
    """
    tokens = tokens_of(text)
    behind = next(at for at, one in enumerate(tokens) if at > 2 and one.is_word("from", "in"))
    if tokens[behind - 1].is_symbol(")"):
        opening = next(one for one in tokens if one.is_symbol("("))
        return f"{text[: opening.start]}{columns.removesuffix(')')}, {text[opening.end :]}"
    return f"{text[: tokens[behind].start]}{columns} {text[tokens[behind].start :]}"


def with_columns_of(text: str, stated: str) -> str | None:
    """Returns the text of a CREATE SOURCE that states no columns with those of another one; None if more differs.

    Names may differ, too.

    Example:
        >>> stated = "CREATE SOURCE s (a integer, PRIMARY KEY (a)) FROM DELTA (URI 'lake/s')"
        >>> with_columns_of("CREATE SOURCE t (PRIMARY KEY (a)) FROM DELTA (URI 'lake/s')", stated)
        "CREATE SOURCE t (a integer, PRIMARY KEY (a)) FROM DELTA (URI 'lake/s')"
        >>> with_columns_of("CREATE SOURCE s FROM DELTA (URI 'lake/t')", stated)
    """
    opening = _from_parenthesis(stated)[0]
    declared = f"{stated[opening.start : _end_of_columns(stated)]})"
    found = with_declared_columns(text, declared)
    same = same_tokens(found[_from_parenthesis(found)[0].start :], stated[opening.start :])
    return found if same else None


def differ_in_columns_alone(text: str, other: str) -> bool:
    """Returns whether two CREATE SOURCEs, both of which state columns, say the same but for these and names.

    Example:
        >>> stated = "CREATE SOURCE s (a integer, PRIMARY KEY (a)) FROM DELTA (URI 'lake/s')"
        >>> differ_in_columns_alone(stated, stated.replace("a integer", "a integer, b text"))
        True
        >>> differ_in_columns_alone(stated, stated.replace("lake/s", "lake/t"))
        False
    """
    return same_tokens(text[_end_of_columns(text) :], other[_end_of_columns(other) :])


def column_list(text: str) -> str:
    """Returns what a CREATE SOURCE that states its columns says of them and their key, as CREATE TABLE would.

    Example:
        >>> column_list("CREATE SOURCE s (a numeric(3, 1), PRIMARY KEY (a)) FROM FILES (FOLDER 'x') FORMAT JSON")
        '(a numeric(3, 1), PRIMARY KEY (a))'
    """
    return text[_from_parenthesis(text)[0].start : _end_of_list(text)]


def behind_column_list(text: str) -> str:
    """Returns what a CREATE SOURCE that states its columns says behind them and their key.

    Example:
        >>> behind_column_list("CREATE SOURCE s (a numeric(3, 1), PRIMARY KEY (a)) FROM FILES (FOLDER 'x') FORMAT JSON")
        " FROM FILES (FOLDER 'x') FORMAT JSON"
    """
    return text[_end_of_list(text) :]


def _end_of_list(text: str) -> int:
    return next(token.end for token, _, depth in _nested(text) if depth == 0)


def _end_of_columns(text: str) -> int:
    """Returns where the columns end that a CREATE SOURCE states, and its key begins, if it has one."""
    return next(
        token.start
        for token, behind, depth in _nested(text)
        if depth == 0 or (depth == 1 and token.is_symbol(",") and behind.is_word("primary"))
    )


def _nested(text: str) -> Iterator[tuple[Token, Token, int]]:
    """Yields tokens from the first parenthesis on, each with the one behind it and how many are open by then."""
    depth = 0
    for token, behind in pairwise(_from_parenthesis(text)):
        depth += token.is_symbol("(", "[") - token.is_symbol(")", "]")
        yield token, behind, depth


def _from_parenthesis(text: str) -> Sequence[Token]:
    """Returns the tokens from the first parenthesis on."""
    tokens = tokens_of(text)
    return tokens[next(at for at, one in enumerate(tokens) if one.is_symbol("(")) :]
