"""The two ways in which PostgreSQL compares rows, by the comparisons of their values.

Written as rows, or asked of a subquery, they compare column by column with SQL's third truth value: `(a, b) = (c, d)`
is `a = c AND b = d`, `(a, b) < (c, d)` is `a < c OR (a = c AND b < d)`. Records as values, a whole row of a relation
for example, are equal if no field is distinct, and NULL is then greater than everything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mz_dagster.functions import Unknown
from mz_dagster.scalars.record import field
from mz_dagster.scalars.scalar import Call, If, Literal, Scalar
from mz_dagster.scalars.types import BOOL
from mz_dagster.sql.binding import Bound
from mz_dagster.sql.errors import DatatypeMismatch

#: Applies an operator to two values.
Compare = Callable[[str, Bound, Bound], Scalar]


def compared_rows(symbol: str, left: Sequence[Bound], right: Sequence[Bound], compare: Compare) -> Scalar:
    """Returns the comparison of two rows of one length, by that of their values."""
    pairs = list(zip(left, right, strict=True))
    if symbol in ("=", "<>"):
        tests = [compare(symbol, a, b) for a, b in pairs]
        return connected("and" if symbol == "=" else "or", tests)
    *before, (last_left, last_right) = pairs
    result = compare(symbol, last_left, last_right)
    for a, b in reversed(before):
        equal = connected("and", [compare("=", a, b), result])
        result = connected("or", [compare(symbol[0], a, b), equal])
    return result


def null_test(scalar: Scalar, *, negated: bool) -> Scalar:
    """Returns whether all fields of a record are NULL; negated: whether none is, which is not the contrary."""
    name = "is_not_null" if negated else "is_null"
    fields = [field(scalar, number) for number in range(len(scalar.type.fields))]
    return connected("and", [Call(name, (one,), BOOL, False) for one in fields])


def compared_records(symbol: str, left: Scalar, right: Scalar, compare: Compare, position: int) -> Scalar:
    """Returns the comparison of two records as values."""
    types = [[type_ for _, type_ in one.type.fields] for one in (left, right)]
    if len(types[0]) != len(types[1]):
        raise DatatypeMismatch("cannot compare record types with different numbers of columns", position=position)
    for number, (a, b) in enumerate(zip(*types, strict=True), 1):
        if a.kind is not b.kind:
            message = f"cannot compare dissimilar column types {a} and {b} at record column {number}"
            raise DatatypeMismatch(message, position=position)

    def compare_fields(one: str, a: Bound, b: Bound) -> Scalar:
        assert not isinstance(a, Unknown)
        assert not isinstance(b, Unknown)
        if one == "=":
            return compare("is not distinct from", a, b)
        if one == "<>":
            return compare("is distinct from", a, b)
        return _with_nulls(one, a, b, compare(one, a, b))

    fields = [[field(one, number) for number in range(len(types[0]))] for one in (left, right)]
    found = compared_rows(symbol, fields[0], fields[1], compare_fields)
    missing = [Call("is_null", (one,), BOOL, False) for one in (left, right) if one.nullable]
    return If(connected("or", missing), Literal(None, BOOL), found) if missing else found


def same_records(left: Scalar, right: Scalar, compare: Compare, position: int) -> Scalar:
    """Returns `left IS NOT DISTINCT FROM right` for two records as values."""
    same = compared_records("=", left, right, compare, position)
    if not left.nullable and not right.nullable:
        return same
    missing = [Call("is_null", (one,), BOOL, False) for one in (left, right)]
    return If(connected("or", missing), connected("and", missing), same)


def _with_nulls(symbol: str, a: Scalar, b: Scalar, test: Scalar) -> Scalar:
    """Returns an order's comparison in which NULL is greater than everything and equals NULL."""
    if not a.nullable and not b.nullable:
        return test
    nulls = [Call("is_null", (one,), BOOL, False) for one in (a, b)]
    less, or_equal = symbol[0] == "<", symbol.endswith("=")
    # Of a and b: whose being NULL alone proves the comparison, and whose refutes it.
    proves, refutes = (nulls[1], nulls[0]) if less else (nulls[0], nulls[1])
    both = If(proves, Literal(or_equal, BOOL), Literal(False, BOOL))
    return If(refutes, both, If(proves, Literal(True, BOOL), test))


def connected(word: str, tests: Sequence[Scalar]) -> Scalar:
    """Returns the tests, of which there is one at least, connected by `and` or `or`."""
    return tests[0] if len(tests) == 1 else Call(word, tuple(tests), BOOL, any(one.nullable for one in tests))
