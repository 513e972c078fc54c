"""The aggregates of jsonb and json: an array of members, from which a scalar makes the whole."""

from __future__ import annotations

from mz_dagster.functions import Failure
from mz_dagster.functions.aggregates.algebra import Spelling
from mz_dagster.functions.jsonb.as_json import SPACED, as_json, as_json_or_null
from mz_dagster.functions.jsonb.as_jsonb import as_jsonb, as_jsonb_or_null, as_key
from mz_dagster.scalars.scalar import Call, Scalar
from mz_dagster.scalars.types import JSON, JSONB, TEXT, Kind
from mz_dagster.sql.aggregate_expansion import Expansion
from mz_dagster.sql.errors import UnsupportedForm, error_of

_NO_KEY = "22023 field name must not be null"


def jsonb_array(expansion: Expansion) -> Scalar:
    """Returns what a call of `jsonb_agg` means."""
    value = expansion.typed(0)
    if expansion.call.distinct:
        # Values are distinct, and in order, by their own type.
        return _made(expansion, as_jsonb(_distinct(expansion, value)), 0)
    members = expansion.ordered_array(_made(expansion, as_jsonb_or_null(value), 0))
    return _made(expansion, as_jsonb(members), 0)


def json_array(expansion: Expansion) -> Scalar:
    """Returns what a call of `json_agg` means."""
    value = expansion.typed(0)
    if expansion.call.distinct:
        return _made(expansion, as_json(_distinct(expansion, value), SPACED), 0)
    # What has members itself stands on a line of its own.
    separator = ", \n " if value.type.kind in (Kind.ARRAY, Kind.DIMENSIONED, Kind.RECORD) else SPACED
    members = expansion.ordered_array(_made(expansion, as_json_or_null(value), 0))
    return _made(expansion, as_json(members, separator), 0)


def _distinct(expansion: Expansion, value: Scalar) -> Scalar:
    """Returns the array of the distinct values, by their own type."""
    if value.type.array_element is not None:
        raise UnsupportedForm(
            f"DISTINCT in {expansion.call.name}() of arrays is not supported",
            detail="An array of arrays is one of more dimensions.",
            hint="Select the distinct arrays in a derived table.",
            position=expansion.call.position,
        )
    return expansion.ordered_array(value)


def object_of_pairs(expansion: Expansion) -> Scalar:
    """Returns what a call of one of the aggregates means that make objects."""
    name = expansion.call.name
    if expansion.call.distinct:
        raise UnsupportedForm(
            f"DISTINCT in {name}() is not supported",
            detail="An object has each of its keys once.",
            hint="Say by ORDER BY which of several values of a key is the last.",
            position=expansion.call.position,
        )
    key = _made(expansion, as_key(expansion.typed(0), _NO_KEY), 0)
    if expansion.record.spelling is Spelling.JSON_OBJECT:
        value = _made(expansion, as_json_or_null(expansion.typed(1)), 1)
        return Call("json_of_members", (expansion.ordered_array(Call("json_member", (key, value), TEXT, False)),), JSON)
    value = _made(expansion, as_jsonb_or_null(expansion.typed(1)), 1)
    pair = Call("jsonb_build_array", (Call("to_jsonb_text", (key,), JSONB, False), value), JSONB, False)
    return Call("jsonb_object_of_pairs", (expansion.ordered_array(pair),), JSONB)


def _made(expansion: Expansion, found: Scalar | Failure, argument: int) -> Scalar:
    if isinstance(found, Failure):
        raise error_of(found, expansion.position_of_argument(argument))
    return found
