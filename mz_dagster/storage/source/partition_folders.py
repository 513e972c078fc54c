"""Columns whose values folders say: of a file in `day=2024-01-31/city=Den%20Haag/`, what stands behind their names.

Names and values are escaped as Hive and Spark do, `%` and two digits for what a path does not hold, and the value
`__HIVE_DEFAULT_PARTITION__` is NULL. A value is text, which is read as that of any other format.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote

import pyarrow as pa

from mz_dagster.scalars.types import Column
from mz_dagster.storage.source.errors import SourceUnreadable

_NULL = "__HIVE_DEFAULT_PARTITION__"


def partition_texts(path: str, names: Sequence[str]) -> list[str | None]:
    """Returns what a path says of columns.

    Raises:
        SourceUnreadable: It does not say one, or says it twice, or what it says is no text.

    Example:
        >>> partition_texts("day=2024-01-31/city=Den%20Haag/f.csv", ["city", "day"])
        ['Den Haag', '2024-01-31']
    """
    found: dict[str, str | None] = {}
    for part in path.split("/")[:-1]:
        name, separator, value = part.partition("=")
        try:
            name, value = unquote(name, errors="strict"), unquote(value, errors="strict")
        except UnicodeDecodeError as error:
            raise _unreadable(path, f'Its folder "{part}" is no text.') from error
        if not separator or name not in names:
            continue
        if name in found:
            raise _unreadable(path, f'Its folders say column "{name}" twice.')
        if "\0" in value:
            raise _unreadable(path, f'Its folder "{part}" is no text.')
        found[name] = None if value == _NULL else value
    for name in names:
        if name not in found:
            raise _unreadable(path, f'It is in no folder "{name}=...".')
    return [found[name] for name in names]


def check_partition(path: str, columns: Sequence[Column]) -> None:
    """Returns if a path says a value of each column's type.

    Raises:
        SourceUnreadable: It does not.
    """
    from mz_dagster.storage.source.local.decode import decoded

    for column, text in zip(columns, partition_texts(path, [one.name for one in columns]), strict=True):
        if text is None:
            if not column.nullable:
                raise _unreadable(path, f'Its folders say NULL of column "{column.name}", which is NOT NULL.')
            continue
        faults = decoded(pa.array([text], pa.string()), column.type)[1]
        if faults:
            raise _unreadable(path, f'Its folders say of column "{column.name}": {faults[0].partition(" ")[2]}.')


def _unreadable(path: str, detail: str) -> SourceUnreadable:
    return SourceUnreadable(
        f'the folders of file "{path}" do not say the partition columns',
        detail=detail,
        hint="Move the file into folders called column=value, or out of the source's; no file of the source was bound.",
    )
