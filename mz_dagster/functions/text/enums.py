"""Enumerations: the labels of values, and the values of labels; see `scalars.types.Enumeration`."""

from __future__ import annotations

from collections.abc import Sequence

from mz_dagster.functions.registry import SqlFailure, pure


@pure("label_of_enum")
def label(member: str) -> str:
    """Returns the label of a value.

    Example:
        >>> label("2 very happy")
        'very happy'
    """
    return member.partition(" ")[2]


@pure("enum_of_label")
def member(text: str, members: Sequence[str], name: str) -> str:
    """Returns the value with a label, of those of a type.

    Example:
        >>> member("happy", ["1 sad", "2 happy"], "mood")
        '2 happy'
    """
    for one in members:
        if one.partition(" ")[2] == text:
            return one
    raise SqlFailure("22P02", f'invalid input value for enum {name}: "{text}"')
