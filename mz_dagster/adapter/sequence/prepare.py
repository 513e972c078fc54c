"""PREPARE and EXECUTE: a statement under a name, and its execution with values for its parameters."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from mz_dagster.adapter.describing import describe
from mz_dagster.adapter.prepared_statements import DuplicateStatement, PreparedStatement, UndefinedStatement
from mz_dagster.adapter.result import Result
from mz_dagster.adapter.sequence.context import Context
from mz_dagster.adapter.sequence.select import reads_of
from mz_dagster.adapter.sequence.written import Parameters
from mz_dagster.budget import engine_of
from mz_dagster.functions import OpenParameter
from mz_dagster.plan.relation import Map
from mz_dagster.plan.semijoin import ONE_ROW
from mz_dagster.scalars.parameter_types import without_size
from mz_dagster.scalars.scalar import Literal, Scalar
from mz_dagster.scalars.types import TEXT, UNCONSTRAINED, Kind, ScalarType
from mz_dagster.sql import Delete, Execute, Insert, Prepare, Select, Statement, Update
from mz_dagster.sql.constraints import bind_argument
from mz_dagster.sql.errors import IndeterminateDatatype, InvalidSyntax
from mz_dagster.sql.type_names import looked_up


def prepare(context: Context, statement: Prepare, _: Parameters) -> Result:
    """Keeps a statement under a name, once it is known that it means something, and of which types its parameters are.

    Raises:
        DuplicateStatement: There is one of the name.
        IndeterminateDatatype: Nothing says of which type a parameter is.
        ProgrammingError: It does not bind.
    """
    name, resolve = statement.name, context.names.resolve
    if find(context, name) is not None:
        raise DuplicateStatement.named(name)
    said = [one and looked_up(one, resolve, statement.offset + 1) for one in statement.types]
    types = parameter_types(context, statement.prepared, statement.places, said)
    text, now_ms = statement.prepared.text, context.engine.clock.now_ms()
    prepared = PreparedStatement(statement.prepared, text, statement.places, types, statement.text, now_ms)
    context.variables.prepared[name] = prepared
    return Result("PREPARE")


def execute(context: Context, statement: Execute, parameters: Parameters) -> Result:
    """Executes a prepared statement, and returns what that returns.

    Raises:
        UndefinedStatement: There is none of the name.
        InvalidSyntax: It has another number of parameters.
        DatatypeMismatch: A value is of a type that does not become its parameter's by itself.
    """
    with context.failing(), context.names.in_statement(), engine_of(context.variables.engine):
        if (block := context.variables.transaction) is not None:
            block.begin_statement(queries=False)
        name = statement.name.last
        prepared = find(context, name)
        if prepared is None:
            raise UndefinedStatement.named(name)
        # As in PostgreSQL, what has no parameters does not look at values.
        if prepared.types and len(statement.arguments) != len(prepared.types):
            raise InvalidSyntax(
                f'wrong number of parameters for prepared statement "{name}"',
                detail=f"Expected {len(prepared.types)} parameters but got {len(statement.arguments)}.",
            )
        values = _values(context, statement, prepared, parameters) if prepared.types else []
    return context.sequence(prepared.statement, [values[place] for place in prepared.places])


def find(context: Context, name: str) -> PreparedStatement | None:
    """Returns what is prepared under a name, by SQL or by the protocol; None if nothing is."""
    client = context.variables.client
    found = context.variables.prepared.get(name)
    by_client = None if found is not None or client is None else client.prepared_statement(name)
    if by_client is None:
        return found
    statement, text, places, said = by_client
    return PreparedStatement(statement, text, places, parameter_types(context, statement, places, said))


def parameter_types(
    context: Context, statement: Statement, places: Sequence[int], said: Sequence[ScalarType | None]
) -> list[ScalarType | None]:
    """Returns of which types the parameters of a statement are; None of a text of any length.

    What is not said is decided by the first place at which a parameter stands, as in PostgreSQL: at the others it is
    of that type, too, and perhaps has to be cast.

    Args:
        context: The session.
        statement: The statement.
        places: Of each of its `?` the number of a parameter.
        said: What is said of the first parameters; None of those of which it is not.

    Raises:
        IndeterminateDatatype: Nothing says it.
        ProgrammingError: The statement does not bind.
    """
    types = [None if one is None else without_size(one) for one in said]
    types += [None] * (max(places, default=-1) + 1 - len(types))
    asked = [OpenParameter() if one is None else Literal(None, one) for one in types]
    _described(context, statement, [asked[place] for place in places])
    in_several_ways = False
    for number, one in enumerate(asked):
        if not isinstance(one, OpenParameter):
            continue
        if not one.types:
            raise IndeterminateDatatype(
                f"could not determine data type of parameter ${number + 1}",
                hint="Write its type behind the name of the statement, or cast it.",
            )
        first = one.types[0]
        # A text beside one of a fixed length is padded or cut as that is, which only where it stands is known.
        types[number] = None if first.kind is Kind.CHAR else without_size(first)
        in_several_ways |= len({*map(without_size, one.types)}) > 1
    if in_several_ways:
        known = [OpenParameter() if one is None else Literal(None, one) for one in types]
        _described(context, statement, [known[place] for place in places])
    return types


def _described(context: Context, statement: Statement, parameters: Sequence[object]) -> None:
    """Binds a statement; what it takes open parameters to be is noted in them."""
    match statement:
        case Select():
            reads_of(context).described(statement, parameters)
        case Insert() | Update() | Delete():
            # One more, since what has no open parameter is not looked at before it is executed.
            describe(context.names, statement, [*parameters, OpenParameter()], context.circumstances())
        case _:
            describe(context.names, statement, parameters, context.circumstances())


def _values(context: Context, statement: Execute, prepared: PreparedStatement, parameters: Parameters) -> list[object]:
    """Returns the values of an EXECUTE, as parameters of what was prepared."""
    types, circumstances = [one or TEXT for one in prepared.types], context.circumstances()
    scalars: list[Scalar] = [
        bind_argument(number, text, type_, context.names, parameters, circumstances)
        for number, (text, type_) in enumerate(zip(statement.arguments, types, strict=True), 1)
    ]
    if not all(isinstance(one, Literal) for one in scalars):
        names = tuple(f"${number}" for number in range(1, len(scalars) + 1))
        row = Map(ONE_ROW, tuple(scalars), names)
        ((*values,),) = context.peeks.peek_at(context.peeks.planned(row), 0)
    else:
        values = [one.value for one in scalars if isinstance(one, Literal)]
    return [_given(value, said, type_) for value, said, type_ in zip(values, prepared.types, types, strict=True)]


def _given(value: object, said: ScalarType | None, type_: ScalarType) -> object:
    if said is None:
        return value  # a text, or NULL, of which the context decides
    if type_ == UNCONSTRAINED and value is not None:
        return Decimal(str(value))
    return Literal(value, type_)  # type: ignore[arg-type]
