"""Examples of every scalar function, by area: what `test_scalar_against_postgres.py` holds against PostgreSQL.

A new area is a file with a generator `examples()`, and a line in `AREAS`.
"""

from collections.abc import Callable, Iterator

from tests.compute.examples import (
    arrays,
    interval,
    json_text,
    jsonb,
    logic,
    modifiers,
    moment,
    numbers,
    regexp,
    strings,
    text,
    timetz,
    transcendental,
    unconstrained,
)
from tests.compute.examples.example import POOLS, Example, casting, function, operator, quote, rounding, sample

AREAS: dict[str, Callable[[], Iterator[Example]]] = {
    "numbers": numbers.examples,
    "transcendental": transcendental.examples,
    "text": text.examples,
    "strings": strings.examples,
    "regexp": regexp.examples,
    "moment": moment.examples,
    "interval": interval.examples,
    "logic": logic.examples,
    "arrays": arrays.examples,
    "jsonb": jsonb.examples,
    "json": json_text.examples,
    "unconstrained": unconstrained.examples,
    "modifiers": modifiers.examples,
    "timetz": timetz.examples,
}

__all__ = ["AREAS", "POOLS", "Example", "casting", "function", "operator", "quote", "rounding", "sample"]
