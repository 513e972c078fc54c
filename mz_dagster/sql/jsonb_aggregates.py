"""The aggregates of jsonb: an array of jsonb, from which a scalar makes the whole."""

from __future__ import annotations

from mz_dagster.functions import Failure
from mz_dagster.functions.jsonb.as_jsonb import as_jsonb, as_jsonb_or_null, as_key
from mz_dagster.scalars.scalar import Call, Scalar
from mz_dagster.scalars.types import JSONB
from mz_dagster.sql.aggregate_expansion import Expansion
from mz_dagster.sql.errors import UnsupportedForm, error_of

JSONB_AGGREGATES = ("jsonb_agg", "jsonb_object_agg")
_NO_KEY = "22023 field name must not be null"


def jsonb_aggregate(expansion: Expansion) -> Scalar:
    """Returns what a call of one of `JSONB_AGGREGATES` means."""
    return _array(expansion) if expansion.call.name == "jsonb_agg" else _object(expansion)


def _array(expansion: Expansion) -> Scalar:
    value = expansion.typed(0)
    if expansion.call.distinct:
        # Values are distinct, and in order, by their own type.
        return _made(expansion, as_jsonb(expansion.ordered_array(value)), 0)
    members = expansion.ordered_array(_made(expansion, as_jsonb_or_null(value), 0))
    return _made(expansion, as_jsonb(members), 0)


def _object(expansion: Expansion) -> Scalar:
    if expansion.call.distinct:
        raise UnsupportedForm(
            "DISTINCT in jsonb_object_agg() is not supported",
            detail="An object has each of its keys once.",
            hint="Say by ORDER BY which of several values of a key is the last.",
            position=expansion.call.position,
        )
    key = _made(expansion, as_key(expansion.typed(0), _NO_KEY), 0)
    value = _made(expansion, as_jsonb_or_null(expansion.typed(1)), 1)
    pair = Call("jsonb_build_array", (Call("to_jsonb_text", (key,), JSONB, False), value), JSONB, False)
    return Call("jsonb_object_of_pairs", (expansion.ordered_array(pair),), JSONB)


def _made(expansion: Expansion, found: Scalar | Failure, argument: int) -> Scalar:
    if isinstance(found, Failure):
        raise error_of(found, expansion.position_of_argument(argument))
    return found
