"""Enumerations: the labels of values, and the values of labels; see `scalars.types.Enumeration`."""

from __future__ import annotations

from collections.abc import Sequence

from mz_dagster.functions.registry import SqlFailure, function
from mz_dagster.scalars.types import Kind


@function("label_of_enum", (Kind.ENUM,), Kind.TEXT)
def label(member: str) -> str:
    """Returns the label of a value.

    Example:
        >>> label("2 very happy")
        'very happy'
    """
    return member.partition(" ")[2]


@function("enum_of_label", (Kind.TEXT, Kind.ARRAY, Kind.TEXT), Kind.ENUM, fallible=True)
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


@function("renamed_label_of_enum", (Kind.ENUM, Kind.ARRAY, Kind.ARRAY), Kind.TEXT)
def renamed_label(member: str, members: Sequence[str], labels: Sequence[str]) -> str:
    """Returns the label of a value, of a type some of whose members have other labels by now.

    Example:
        >>> renamed_label("1 sad", ["1 sad"], ["low"]), renamed_label("2 happy", ["1 sad"], ["low"])
        ('low', 'happy')
    """
    return labels[members.index(member)] if member in members else label(member)


@function("enum_of_renamed_label", (Kind.TEXT, Kind.ARRAY, Kind.ARRAY, Kind.TEXT), Kind.ENUM, fallible=True)
def member_of_renamed(text: str, members: Sequence[str], labels: Sequence[str], name: str) -> str:
    """Returns the value with a label, of a type some of whose members have other labels by now.

    Example:
        >>> member_of_renamed("low", ["1 sad", "2 happy"], ["low", "happy"], "mood")
        '1 sad'
    """
    if text not in labels:
        raise SqlFailure("22P02", f'invalid input value for enum {name}: "{text}"')
    return members[labels.index(text)]
