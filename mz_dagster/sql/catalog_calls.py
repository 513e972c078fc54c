"""Functions and casts that ask the system catalogs: `pg_get_userbyid(x)`, `'t'::regclass`, `x::regtype::text`.

Each is bound to a lookup in what the catalogs say when the statement is bound (`CatalogFacts`), so it is evaluated like
any other expression; a definition, which has no such moment, is refused. An `oid` is a bigint and a `name` a text under
another label. So is a `regclass`, which becomes the relation's name where it is cast to text or leaves a query.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from sqlglot import exp

from mz_dagster.errors import Error, ProgrammingError
from mz_dagster.functions import CastContext, Failure, Unknown, cast, resolve_function, type_name
from mz_dagster.functions.catalog.catalog_functions import NO_MODIFIER, PSEUDO_TYPES
from mz_dagster.scalars.scalar import Call, ColumnRef, If, Literal, OuterColumn, Scalar, Subquery
from mz_dagster.scalars.type_ids import LABELLED, NAME, OID, type_id
from mz_dagster.scalars.types import BOOL, INT2, INT4, INT8, TEXT, Kind, ScalarType, array_of
from mz_dagster.sql.binding import Bound, Null, constant_text
from mz_dagster.sql.catalog_facts import CatalogFacts
from mz_dagster.sql.cursor import quoted
from mz_dagster.sql.errors import (
    AmbiguousFunction,
    CannotCoerce,
    InvalidSchemaName,
    UndefinedFunction,
    UndefinedObject,
    UndefinedTable,
    UndefinedType,
    UnsupportedForm,
    ValueOutOfRange,
    error_of,
)
from mz_dagster.sql.expression_binder import ExpressionBinder
from mz_dagster.sql.lexer import TokenKind, tokens_of
from mz_dagster.sql.schemas import names_in
from mz_dagster.sql.type_names import TypeName, type_name_of

#: What names something by its object id.
REGISTERED = ("regclass", "regtype", "regproc", "regprocedure", "regoperator", "regnamespace", "regrole")
#: How many columns a relation has at most, and one: what object id and number of a column are one key by.
COLUMNS = 1 << 16
#: PostgreSQL's numbers of encodings.
_ENCODINGS = {0: "SQL_ASCII", 6: "UTF8", 8: "LATIN1"}
_INTEGERS = (Kind.INT2, Kind.INT4, Kind.INT8)
_VECTORS = ("int2vector", "oidvector")
_NAME_BYTES = 63
#: What has characters of which the first is a "char", and the number of the last one that UTF-8 has as it is.
_STRINGS = (Kind.TEXT, Kind.VARCHAR, Kind.CHAR)
_MOST_CHAR = 127


def facts_of(binder: ExpressionBinder, what: str, node: exp.Expr) -> CatalogFacts:
    """Returns what the system catalogs say.

    Raises:
        UnsupportedForm: It is a definition that asks, or there are no catalogs to ask.
    """
    circumstances = binder.binding.circumstances
    if circumstances is None or circumstances.catalog is None:
        raise UnsupportedForm(
            f"{what} is not supported in a definition",
            detail="What the system catalogs say is no function of the collections, so a view of it could not be kept.",
            hint="Query it with SELECT.",
            position=binder.body.position(node),
        )
    return circumstances.catalog


# ---- casts


def bind_catalog_cast(binder: ExpressionBinder, named: TypeName, node: exp.Cast) -> Bound:
    """Returns a cast to a type of the system catalogs."""
    target = named.scalar_type
    bound = binder.bind(node.this)
    if named.label in REGISTERED and not named.is_array:
        return _registered(binder, bound, named.label, node)
    if isinstance(bound, Unknown):
        text = bound.text
        if named.label in _VECTORS and text is not None and not text.startswith("{"):
            cells = text.split()
            bound = Unknown(f"[0:{len(cells) - 1}]={{{','.join(cells)}}}" if cells else "{}")
        elif named.label in ("name", "char") and text is not None and not named.is_array:
            bound = Unknown(_cut(text, named.label))
        return labelled_as(binder.literal(bound, target, node.this, rounds=True), target)
    if named.label == "char" and not named.is_array and bound.type.kind not in _STRINGS:
        return labelled_as(_character(binder, bound, node), target)
    found = cast(bound.type, target, CastContext.EXPLICIT)
    if isinstance(found, Failure):
        raise error_of(found, binder.body.position(node))
    value = found.apply(bound)
    if named.label in ("name", "char") and not named.is_array and bound.type.label != named.label:
        length = _NAME_BYTES if named.label == "name" else 1
        value = Call("left_text", (value, Literal(length, INT4)), TEXT, value.nullable)
    return labelled_as(value, target)


def _character(binder: ExpressionBinder, bound: Scalar, node: exp.Expr) -> Scalar:
    """Returns the "char" of a number, of which there are 0 to 127; those below have no text in UTF-8."""
    position = binder.body.position(node)
    if bound.type.kind is not Kind.INT4:
        raise CannotCoerce(f'cannot cast type {type_name(bound.type)} to "char"', position=position)
    if isinstance(bound, Literal):
        if not isinstance(bound.value, int):
            return Literal(None, TEXT)
        if not 0 <= bound.value <= _MOST_CHAR:
            raise ValueOutOfRange('"char" out of range', position=position)
        return Literal(chr(bound.value) if bound.value else "", TEXT)
    # Of what is beyond them some multiple is no smallint, which is an error of the same code.
    multiple = Call("multiply_int4", (bound, Literal(1000, INT4)), INT4, bound.nullable)
    narrow, text = (cast(INT4, INT2, CastContext.EXPLICIT), cast(INT2, TEXT, CastContext.EXPLICIT))
    assert not isinstance(narrow, Failure)
    assert not isinstance(text, Failure)
    is_beyond = Call("gt_int4", (bound, Literal(_MOST_CHAR, INT4)), BOOL, bound.nullable)
    one = If(is_beyond, text.apply(narrow.apply(multiple)), Call("chr_int4", (bound,), TEXT, bound.nullable))
    return If(Call("eq_int4", (bound, Literal(0, INT4)), BOOL, bound.nullable), Literal("", TEXT), one)


def code_of_character(bound: Scalar) -> Scalar:
    """Returns the number of a "char"."""
    if isinstance(bound, Literal):
        return Literal(None if bound.value is None else ord(str(bound.value) or "\0"), INT4)
    return Call("ascii_text", (labelled_as(bound, TEXT),), INT4, bound.nullable)


def labelled_as(scalar: Scalar, type_: ScalarType) -> Scalar:
    """Returns a value of a type under its label."""
    match scalar:
        case Literal():
            return Literal(scalar.value, type_)
        case ColumnRef() | OuterColumn() if type_.label != scalar.type.label:  # one that is passed on keeps its type
            return Call("coalesce", (scalar,), type_, scalar.nullable)
        case ColumnRef() | OuterColumn() | Call():
            return replace(scalar, type=type_)
        case If():
            return If(scalar.condition, labelled_as(scalar.then, type_), labelled_as(scalar.otherwise, type_))
        case Subquery():  # whose type is that of what it selects
            return Call("coalesce", (scalar,), type_, scalar.nullable)
        case _:
            assert_never(scalar)


def _cut(text: str, label: str) -> str:
    return text.encode()[:_NAME_BYTES].decode(errors="ignore") if label == "name" else text[:1]


def _registered(binder: ExpressionBinder, bound: Bound, label: str, node: exp.Expr) -> Scalar:
    """Returns what a text or an object id names, as an object id."""
    target = LABELLED.get(label, OID)
    if not isinstance(bound, Unknown) and bound.type.kind in _INTEGERS:
        return labelled_as(_as_int8(bound), target)
    if not isinstance(bound, Unknown) and bound.type.kind not in (Kind.TEXT, Kind.VARCHAR):
        message = f"cannot cast type {type_name(bound.type)} to {label}"
        raise CannotCoerce(message, position=binder.body.position(node))
    text = bound.text if isinstance(bound, Unknown) else bound.value if isinstance(bound, Literal) else bound
    if text is None:
        return Literal(None, target)
    if isinstance(text, str):
        return Literal(_id_of_text(binder, text, label, node), target)
    assert not isinstance(bound, Unknown), "it has no text"
    kind = _NAMED[label]
    name = binder.as_type(bound, TEXT, node)
    found = facts_of(binder, f"a cast to {label}", node).lookup(kind.lookup).of(name)
    begun = Call("concat_text", (Literal(f'{kind.error.sqlstate} {kind.noun} "', TEXT), name), TEXT, name.nullable)
    said = Call("concat_text", (begun, Literal('" does not exist', TEXT)), TEXT, name.nullable)
    missing = Call("is_null", (found,), BOOL, False)
    return labelled_as(If(missing, Call("error", (said,), INT8, True), found), target)


@dataclass(frozen=True, slots=True)
class _Kind:
    """What a label names: for errors, the lookup of object ids by names, and the error that there is none."""

    noun: str
    lookup: str
    error: type[ProgrammingError]


_NAMED: Mapping[str, _Kind] = {
    "regclass": _Kind("relation", "relation ids", UndefinedTable),
    "regnamespace": _Kind("schema", "schema ids", InvalidSchemaName),
    "regrole": _Kind("role", "role ids", UndefinedObject),
    "regtype": _Kind("type", "type name ids", UndefinedType),
    "regproc": _Kind("function", "function ids", UndefinedFunction),
    "regprocedure": _Kind("function", "function signature ids", UndefinedFunction),
    "regoperator": _Kind("operator", "operator signature ids", UndefinedFunction),
    "database": _Kind("database", "database ids", UndefinedObject),
}


def _id_of_text(binder: ExpressionBinder, text: str, label: str, node: exp.Expr) -> int:
    """Returns the object id that a text names, which may be one itself.

    Raises:
        UndefinedTable: There is no such relation; likewise for the others.
    """
    position = binder.body.position(node)
    if text == "-":
        return 0
    found = int(text) if text.isdigit() else _known_id(binder, text, label, node)
    if found is None:
        raise _NAMED[label].error(f'{_NAMED[label].noun} "{text}" does not exist', position=position)
    return found


def _known_id(binder: ExpressionBinder, text: str, label: str, node: exp.Expr) -> int | None:
    """Returns the object id that a text names, None if there is no such thing."""
    if label == "regtype":
        word = text.strip().removeprefix("pg_catalog.")
        if (pseudo := next((id for id, name in PSEUDO_TYPES.items() if name == word), None)) is not None:
            return pseudo
        try:
            named = type_name_of(text)
        except Error:
            return None
        if named.enumeration is None:
            return type_id(named.scalar_type)
        made = ".".join(quoted(one) for one in names_in(named.enumeration.name))
        found = facts_of(binder, f"a cast to {label}", node).lookup("type ids").entries.get(made)
        return None if found is None else int(str(found)) + named.is_array
    key = text
    if label == "regclass":
        key = _relation_key(text)
    elif label in ("regprocedure", "regoperator"):
        name, _, types = text.strip().removesuffix(")").partition("(")
        given = [one.strip() for one in types.split(",") if one.strip()]
        ids = [0 if one.upper() == "NONE" else _known_id(binder, one, "regtype", node) for one in given]
        key = f"{name.strip().removeprefix('pg_catalog.')}({','.join(map(str, ids))})"
    elif label != "database":
        parts = names_in(text)
        if label == "regproc" and parts[:1] == ("pg_catalog",):
            parts = parts[1:]
        key = parts[0] if len(parts) == 1 else ""
    facts = facts_of(binder, f"a cast to {label}", node)
    if label == "regproc" and key in facts.lookup("ambiguous functions").entries:
        raise AmbiguousFunction(f'more than one function named "{text}"', position=binder.body.position(node))
    found = facts.lookup(_NAMED[label].lookup).entries.get(key)
    return None if found is None else int(str(found))


def _relation_key(text: str) -> str:
    """Returns a relation's name as the catalogs have it: in lower case where it is not quoted."""
    tokens = [one for one in tokens_of(text) if one.kind in (TokenKind.WORD, TokenKind.QUOTED)]
    return ".".join(quoted(one.value) for one in tokens)


def _as_int8(scalar: Scalar) -> Scalar:
    found = cast(scalar.type, INT8, CastContext.EXPLICIT)
    assert not isinstance(found, Failure), "it is an integer"
    return found.apply(scalar)


def text_of_label(binder: ExpressionBinder, bound: Scalar, node: exp.Expr) -> Scalar | None:
    """Returns what a value of a type of the system catalogs is as text, None if that is its kind's."""
    label = bound.type.label
    if label in _VECTORS:
        arguments = [bound, Literal(" ", TEXT)]
        resolved = resolve_function("array_to_string", [one.type for one in arguments])
        return binder.applied(resolved, arguments, binder.body.position(node))
    if label not in REGISTERED:
        return None
    return shown_by_label(facts_of(binder, f"a text of a {label}", node), bound)


def shown_by_label(facts: CatalogFacts, bound: Scalar) -> Scalar:
    """Returns the name of what an object id, as a `regclass` or its like, stands for; its digits if it is nothing's."""
    label = bound.type.label
    plain = labelled_as(bound, INT8)
    digits = cast(INT8, TEXT, CastContext.EXPLICIT)
    assert not isinstance(digits, Failure), "there is such a cast"
    if label == "regtype":
        return _type_text(
            facts, plain, Call("formatted_type", (plain, Literal(NO_MODIFIER, INT8)), TEXT, bound.nullable)
        )
    found = facts.lookup(_SHOWN_BY[label]).of(plain)
    is_none = Call("eq_int8", (plain, Literal(0, INT8)), BOOL, bound.nullable)
    named = Call("coalesce", (found, digits.apply(plain)), TEXT, bound.nullable)
    return If(is_none, Literal("-", TEXT), named)


def _type_text(facts: CatalogFacts, id: Scalar, otherwise: Scalar) -> Scalar:
    """Returns what a type is called: one that was made by its name."""
    made = facts.lookup("type texts")
    return Call("coalesce", (made.of(id), otherwise), TEXT, id.nullable) if made.entries else otherwise


_SHOWN_BY = {
    "regclass": "relation texts",
    "regproc": "function names",
    "regprocedure": "function signatures",
    "regoperator": "operator signatures",
    "regnamespace": "schema texts",
    "regrole": "role names",
}


# ---- calls

Handler = Callable[[ExpressionBinder, str, Sequence[exp.Expr], exp.Expr], Bound]


def bind_catalog_call(binder: ExpressionBinder, name: str, nodes: Sequence[exp.Expr], node: exp.Expr) -> Bound:
    """Returns a call of one of `CATALOG_CALLS`.

    Raises:
        UndefinedFunction: It does not take so many arguments.
    """
    counts, handler = CATALOG_CALLS[name]
    if len(nodes) not in counts:
        raise UndefinedFunction(
            f"function {name} with {len(nodes)} arguments does not exist", position=binder.body.position(node)
        )
    return handler(binder, name, nodes, node)


def _id_argument(binder: ExpressionBinder, node: exp.Expr, label: str = "regclass") -> Scalar:
    """Returns an argument that is an object id, or a name of what has one."""
    bound = binder.bind(node)
    if not isinstance(bound, Unknown) and bound.type.label in REGISTERED:
        return labelled_as(bound, INT8)
    return labelled_as(_registered(binder, bound, label, node), INT8)


def _number(binder: ExpressionBinder, node: exp.Expr) -> Scalar:
    return _as_int8(binder.as_type(binder.bind(node), INT8, node))


def _by_id(lookup: str, label: str = "regclass", otherwise: Literal | None = None) -> Handler:
    """Returns what binds a function of an object id; other arguments only say how the result is to be laid out."""

    def bind(binder: ExpressionBinder, name: str, nodes: Sequence[exp.Expr], node: exp.Expr) -> Bound:
        facts = facts_of(binder, f"{name}()", node)
        key = _id_argument(binder, nodes[0], label)
        for one in nodes[1:]:
            binder.bind(one)
        found = facts.lookup(lookup).of(key)
        if otherwise is None:
            return found
        default = If(Call("is_null", (key,), BOOL, False), Literal(None, otherwise.type), otherwise)
        return Call("coalesce", (found, default), found.type, key.nullable)

    return bind


def _user_by_id(binder: ExpressionBinder, name: str, nodes: Sequence[exp.Expr], node: exp.Expr) -> Bound:
    key = _id_argument(binder, nodes[0], "regrole")
    found = facts_of(binder, f"{name}()", node).lookup("role names").of(key)
    digits = cast(INT8, TEXT, CastContext.EXPLICIT)
    assert not isinstance(digits, Failure), "there is such a cast"
    text = Call("concat_text", (Literal("unknown (OID=", TEXT), digits.apply(key)), TEXT, key.nullable)
    unknown = Call("concat_text", (text, Literal(")", TEXT)), TEXT, key.nullable)
    return Call("coalesce", (found, unknown), NAME, key.nullable)


def _by_column(lookup: str) -> Handler:
    """Returns what binds a function of a relation and the number of a column of it."""

    def bind(binder: ExpressionBinder, name: str, nodes: Sequence[exp.Expr], node: exp.Expr) -> Bound:
        relation = _id_argument(binder, nodes[0])
        column = _number(binder, nodes[1]) if len(nodes) > 1 else Literal(0, INT8)
        for one in nodes[2:]:
            binder.bind(one)
        return facts_of(binder, f"{name}()", node).lookup(lookup).of(_pair(relation, column))

    return bind


def _pair(relation: Scalar, column: Scalar) -> Scalar:
    nullable = relation.nullable or column.nullable
    shifted = Call("multiply_int8", (relation, Literal(COLUMNS, INT8)), INT8, relation.nullable)
    return Call("add_int8", (shifted, column), INT8, nullable)


def _described(binder: ExpressionBinder, name: str, nodes: Sequence[exp.Expr], node: exp.Expr) -> Bound:
    """Returns the comment on an object of a catalog; only relations have any."""
    catalog = binder.bind(nodes[1]) if len(nodes) > 1 else Unknown("pg_class")
    text = constant_text(catalog)
    if text is None or text is Null.NULL:
        raise UnsupportedForm(
            f"{name}() of a catalog that is not a literal is not supported", position=binder.body.position(nodes[1])
        )
    facts = facts_of(binder, f"{name}()", node)
    key = _id_argument(binder, nodes[0])
    if text != "pg_class":
        return If(Call("is_null", (key,), BOOL, False), Literal(None, TEXT), Literal(None, TEXT))
    return facts.lookup("comments").of(_pair(key, Literal(0, INT8)))


def _format_type(binder: ExpressionBinder, name: str, nodes: Sequence[exp.Expr], node: exp.Expr) -> Bound:
    type_ = _id_argument(binder, nodes[0], "regtype")
    modifier = binder.bind(nodes[1])
    if isinstance(modifier, Unknown) and modifier.text is None:
        number: Scalar = Literal(NO_MODIFIER, INT8)
    else:
        given = _as_int8(binder.as_type(modifier, INT8, nodes[1]))
        number = Call("coalesce", (given, Literal(NO_MODIFIER, INT8)), INT8, False) if given.nullable else given
    facts = facts_of(binder, f"{name}()", node)
    return _type_text(facts, type_, Call("formatted_type", (type_, number), TEXT, type_.nullable))


def _size_pretty(binder: ExpressionBinder, name: str, nodes: Sequence[exp.Expr], node: exp.Expr) -> Bound:
    bound = binder.bind(nodes[0])
    is_sum = not isinstance(bound, Unknown) and bound.type.kind in (Kind.NUMERIC, Kind.UNCONSTRAINED)
    size = _as_int8(bound) if is_sum else _number(binder, nodes[0])  # type: ignore[arg-type]  # it is no Unknown
    return Call("pretty_size", (size,), TEXT, size.nullable)


def _expression(binder: ExpressionBinder, name: str, nodes: Sequence[exp.Expr], node: exp.Expr) -> Bound:
    """Returns an expression's text, which here is what the catalogs hold of it."""
    for one in nodes[1:]:
        binder.bind(one)
    return labelled_as(binder.as_type(binder.bind(nodes[0]), TEXT, nodes[0]), TEXT)


def _constant(value: object, type_: ScalarType) -> Handler:
    """Returns what binds a function whose value is always the same."""

    def bind(binder: ExpressionBinder, name: str, nodes: Sequence[exp.Expr], node: exp.Expr) -> Bound:
        for one in nodes:
            binder.bind(one)
        return Literal(value, type_)  # type: ignore[arg-type]  # one of its type

    return bind


def _encoding_name(binder: ExpressionBinder, name: str, nodes: Sequence[exp.Expr], node: exp.Expr) -> Bound:
    number = _number(binder, nodes[0])
    found: Scalar = Literal("", TEXT)
    for code, encoding in _ENCODINGS.items():
        found = If(
            Call("eq_int8", (number, Literal(code, INT8)), BOOL, number.nullable), Literal(encoding, TEXT), found
        )
    return labelled_as(found, NAME)


def _encoding_number(binder: ExpressionBinder, name: str, nodes: Sequence[exp.Expr], node: exp.Expr) -> Bound:
    text = binder.as_type(binder.bind(nodes[0]), TEXT, nodes[0])
    upper = Call("upper_text", (text,), TEXT, text.nullable)
    found: Scalar = Literal(-1, INT4)
    for code, encoding in _ENCODINGS.items():
        test = Call("eq_text", (upper, Literal(encoding, TEXT)), BOOL, text.nullable)
        found = If(test, Literal(code, INT4), found)
    return found


def _schemas(binder: ExpressionBinder, name: str, nodes: Sequence[exp.Expr], node: exp.Expr) -> Bound:
    implicit = binder.bind(nodes[0])
    value = implicit.text if isinstance(implicit, Unknown) else getattr(implicit, "value", None)
    facts = facts_of(binder, f"{name}()", node)
    if value not in (True, False, "true", "false", "t", "f"):
        raise UnsupportedForm(f"{name}() takes a literal", position=binder.body.position(nodes[0]))
    path = facts.lookup("search path").entries
    names = tuple(str(path[one]) for one in sorted(path))
    first = ("pg_catalog",) if value in (True, "true", "t") and "pg_catalog" not in names else ()
    return Literal((*first, *names), array_of(NAME))


def _temporary_schema(binder: ExpressionBinder, name: str, nodes: Sequence[exp.Expr], node: exp.Expr) -> Bound:
    """Binds the object id of the schema of the session's temporary objects, 0 if it has none."""
    (found,) = facts_of(binder, f"{name}()", node).lookup("temporary schema").entries.values()
    return Literal(int(str(found)), OID)


def _to_registered(label: str) -> Handler:
    """Returns what binds a function that is NULL where the cast to `label` would be an error."""

    def bind(binder: ExpressionBinder, name: str, nodes: Sequence[exp.Expr], node: exp.Expr) -> Bound:
        bound = binder.bind(nodes[0])
        text = bound.text if isinstance(bound, Unknown) else bound.value if isinstance(bound, Literal) else bound
        if text is None:
            return Literal(None, LABELLED[label])
        if not isinstance(text, str):
            raise UnsupportedForm(f"{name}() takes a literal", position=binder.body.position(nodes[0]))
        return Literal(_known_id(binder, text, label, node), LABELLED[label])

    return bind


def _serial_sequence(binder: ExpressionBinder, name: str, nodes: Sequence[exp.Expr], node: exp.Expr) -> Bound:
    """Returns the name of the sequence of a column, NULL if it has none; both are named as texts."""
    table, column = (binder.as_type(binder.bind(one), TEXT, one) for one in nodes)
    facts = facts_of(binder, f"{name}()", node)
    if isinstance(table, Literal) and table.value is not None:
        table = Literal(_relation_key(str(table.value)), TEXT)
    nullable = table.nullable or column.nullable
    dotted = Call("concat_text", (table, Literal(".", TEXT)), TEXT, table.nullable)
    return facts.lookup("serial sequences").of(Call("concat_text", (dotted, column), TEXT, nullable))


def _privilege(lookup: str, label: str) -> Handler:
    """Returns what binds a question whether a user, by default the session's, has one of some privileges on something.

    The last argument is a literal: one privilege, or several between commas.
    """

    def bind(binder: ExpressionBinder, name: str, nodes: Sequence[exp.Expr], node: exp.Expr) -> Bound:
        facts = facts_of(binder, f"{name}()", node)
        asked = binder.bind(nodes[-1])
        text = asked.text if isinstance(asked, Unknown) else asked.value if isinstance(asked, Literal) else None
        if not isinstance(text, str):
            raise UnsupportedForm(f"{name}() takes its privileges as a literal", position=binder.body.position(node))
        takes_column = name in ("has_column_privilege",)
        has_user = len(nodes) == (4 if takes_column else 3)
        if has_user:
            role = _id_argument(binder, nodes[0], "regrole")
        else:
            role = Literal(facts.lookup("role ids").entries[facts.lookup("session").entries["user"]], INT8)
        key = _id_argument(binder, nodes[1 if has_user else 0], label)
        tests: list[Scalar] = []
        for one in text.upper().split(","):
            allowed = facts.lookup(f"{lookup} {' '.join(one.split())}")
            tests.append(Call("coalesce", (allowed.of(_pair_of_roles(role, key)), Literal(False, BOOL)), BOOL, False))
        return binder.connected("or", tests, binder.body.position(node))

    return bind


#: What is shifted by this and added to a role's object id is one key.
ROLES = 1 << 31


def _pair_of_roles(role: Scalar, key: Scalar) -> Scalar:
    shifted = Call("multiply_int8", (key, Literal(ROLES, INT8)), INT8, key.nullable)
    return Call("add_int8", (shifted, role), INT8, role.nullable or key.nullable)


_TRUE, _FALSE = _constant(True, BOOL), _constant(False, BOOL)

#: How many arguments each takes, and what binds it.
CATALOG_CALLS: Mapping[str, tuple[Sequence[int], Handler]] = {
    "pg_get_userbyid": ((1,), _user_by_id),
    "pg_get_viewdef": ((1, 2), _by_id("view definitions")),
    "pg_get_constraintdef": ((1, 2), _by_id("constraint definitions")),
    "pg_get_indexdef": ((1, 3), _by_column("index definitions")),
    "pg_get_ruledef": ((1, 2), _by_id("rule definitions")),
    "pg_get_expr": ((2, 3), _expression),
    "pg_get_function_arguments": ((1,), _by_id("function arguments", "regproc")),
    "pg_get_function_identity_arguments": ((1,), _by_id("function arguments", "regproc")),
    "pg_get_function_result": ((1,), _by_id("function results", "regproc")),
    "pg_get_function_sqlbody": ((1,), _constant(None, TEXT)),
    "pg_get_function_arg_default": ((2,), _constant(None, TEXT)),
    "pg_get_functiondef": ((1,), _by_id("function definitions", "regproc")),
    "pg_get_statisticsobjdef_columns": ((1,), _constant(None, TEXT)),
    "pg_get_partkeydef": ((1,), _constant(None, TEXT)),
    "pg_get_triggerdef": ((1, 2), _constant(None, TEXT)),
    "pg_sequence_last_value": ((1,), _by_id("sequence numbers")),
    "pg_get_serial_sequence": ((2,), _serial_sequence),
    "pg_table_is_visible": ((1,), _by_id("relation visibility")),
    "pg_type_is_visible": ((1,), _by_id("type visibility", "regtype")),
    "pg_function_is_visible": ((1,), _by_id("function visibility", "regproc")),
    "pg_collation_is_visible": ((1,), _by_id("collation visibility", "regtype")),
    "pg_opclass_is_visible": ((1,), _TRUE),
    "pg_opfamily_is_visible": ((1,), _TRUE),
    "pg_operator_is_visible": ((1,), _TRUE),
    "pg_conversion_is_visible": ((1,), _FALSE),
    "pg_statistics_obj_is_visible": ((1,), _FALSE),
    "pg_ts_config_is_visible": ((1,), _FALSE),
    "pg_ts_dict_is_visible": ((1,), _FALSE),
    "pg_ts_parser_is_visible": ((1,), _FALSE),
    "pg_ts_template_is_visible": ((1,), _FALSE),
    "pg_relation_is_publishable": ((1,), _FALSE),
    "pg_relation_is_updatable": ((2,), _by_id("relation events", otherwise=Literal(0, INT4))),
    "pg_is_other_temp_schema": ((1,), _FALSE),
    "pg_my_temp_schema": ((0,), _temporary_schema),
    "pg_is_in_recovery": ((0,), _FALSE),
    "pg_table_size": ((1,), _by_id("relation sizes")),
    "pg_total_relation_size": ((1,), _by_id("relation sizes")),
    "pg_relation_size": ((1, 2), _by_id("relation sizes")),
    "pg_indexes_size": ((1,), _by_id("index sizes")),
    "pg_database_size": ((1,), _by_id("database sizes", "database")),
    "pg_tablespace_size": ((1,), _by_id("tablespace sizes")),
    "pg_stat_get_numscans": ((1,), _constant(None, INT8)),  # nobody counts them
    "pg_tablespace_location": ((1,), _constant("", TEXT)),
    "pg_size_pretty": ((1,), _size_pretty),
    "obj_description": ((1, 2), _described),
    "shobj_description": ((2,), _described),
    "col_description": ((2,), _by_column("comments")),
    "format_type": ((2,), _format_type),
    "pg_encoding_to_char": ((1,), _encoding_name),
    "pg_char_to_encoding": ((1,), _encoding_number),
    "getdatabaseencoding": ((0,), _constant("UTF8", NAME)),
    "pg_client_encoding": ((0,), _constant("UTF8", NAME)),
    "current_schemas": ((1,), _schemas),
    "to_regclass": ((1,), _to_registered("regclass")),
    "to_regtype": ((1,), _to_registered("regtype")),
    "to_regnamespace": ((1,), _to_registered("regnamespace")),
    "to_regrole": ((1,), _to_registered("regrole")),
    "has_table_privilege": ((2, 3), _privilege("on relations", "regclass")),
    "has_any_column_privilege": ((2, 3), _privilege("on relations", "regclass")),
    "has_sequence_privilege": ((2, 3), _privilege("on relations", "regclass")),
    "has_column_privilege": ((3, 4), _privilege("on relations", "regclass")),
    "has_schema_privilege": ((2, 3), _privilege("on schemas", "regnamespace")),
    "has_database_privilege": ((2, 3), _privilege("on databases", "database")),
    "has_function_privilege": ((2, 3), _privilege("on functions", "regproc")),
    "pg_has_role": ((2, 3), _privilege("of roles", "regrole")),
}
