"""Where the objects within a jsonb stand in PostgreSQL's binary form of it, by which `.keyvalue()` numbers them.

A container is four bytes, four for each element (or key, and value), and then their contents: strings as they are,
numerics and containers at multiples of four.
"""

from __future__ import annotations

from mz_dagster.functions.jsonb.jsonb import Node, Number

_WORD = 4


def offsets_of(root: Node) -> dict[int, int]:
    """Returns how many bytes behind the beginning of a container each that is in it begins, by Python's identity of it.

    Example:
        >>> inner = {"b": Number("1")}
        >>> offsets_of({"a": inner})[id(inner)]
        16
    """
    found: dict[int, int] = {}
    _place(root, 0, found)
    return found


def _place(node: Node, at: int, found: dict[int, int]) -> int:
    """Notes where a value stands whose bytes begin at `at`, and returns where they end."""
    if type(node) is dict:
        found[id(node)] = at = _aligned(at)
        at += _WORD + 2 * _WORD * len(node) + sum(len(key.encode()) for key in node)
        for value in node.values():
            at = _place(value, at, found)
    elif type(node) is list:
        found[id(node)] = at = _aligned(at)
        at += _WORD + _WORD * len(node)
        for value in node:
            at = _place(value, at, found)
    elif type(node) is Number:
        at = _aligned(at) + _numeric_size(node)
    elif type(node) is str:
        at += len(node.encode())
    return at


def _aligned(at: int) -> int:
    return -(-at // _WORD) * _WORD


def _numeric_size(number: Number) -> int:
    """Returns how many bytes a numeric takes: its digits by four, and a header that is shorter for most."""
    whole, _, fraction = number.lstrip("-").partition(".")
    padded = whole.rjust(-(-len(whole) // 4) * 4, "0") + fraction.ljust(-(-len(fraction) // 4) * 4, "0")
    groups = [padded[at : at + 4] for at in range(0, len(padded), 4)]
    weight = -(-len(whole) // 4) - 1
    while groups and not groups[0].strip("0"):
        del groups[0]
        weight -= 1
    while groups and not groups[-1].strip("0"):
        del groups[-1]
    is_short = len(fraction) <= 63 and (not groups or -64 <= weight <= 63)
    return (6 if is_short else 8) + 2 * len(groups)
