"""Names what can be wrong with a source as a whole; a bad row is data, not one of these."""

from __future__ import annotations

from mz_dagster.errors import OperationalError


class SourceUnreadable(OperationalError):
    """A source's folder or one of its files cannot be read; nothing is lost, ask again when it can."""

    sqlstate = "58030"


class BoundFileChanged(OperationalError):
    """A file which is bound to a tick is gone or has another content.

    A binding is definite: until the tick is sealed, the collection's content at it is computed from that file, and
    from then on what lies under its path must be what the content was computed from, or nothing.

    Args:
        path: Its path.
        detail: What became of it.
        is_sealed: Whether what it held is sealed, so that it may go.
    """

    sqlstate = "58P01"

    def __init__(self, path: str, detail: str, *, is_sealed: bool = False) -> None:
        way_out = (
            "Move it away, or restore it as it was: what it held before is in the source, and stays."
            if is_sealed
            else "Restore the file as it was, or have it read as it is now: ALTER SOURCE ... RESET."
        )
        super().__init__(
            f'bound file "{path}" has changed',
            detail=detail,
            hint=f"{way_out} New content belongs into a new file.",
        )
        self.path = path


_RESET = (
    "ALTER SOURCE ... RESET reads the difference between what the source holds and the table's newest version; nothing "
    "that it holds is lost."
)


class VersionsLost(OperationalError):
    """What a table's versions between two bindings changed cannot be told any more: files or commits are gone."""

    sqlstate = "58P01"

    def __init__(self, versions: str, detail: str) -> None:
        super().__init__(f"what {versions} changed cannot be read any more", detail=detail, hint=_RESET)


class TableReplaced(OperationalError):
    """In a table's place there is another table than the one that was read."""

    sqlstate = "58P01"

    def __init__(self, table: str, detail: str) -> None:
        super().__init__(f"{table} is not the one that was read", detail=detail, hint=_RESET)


class ColumnsChanged(SourceUnreadable):
    """A table does not have a source's columns any more."""

    sqlstate = "42703"


class UnknownFeature(SourceUnreadable):
    """A table asks of its readers what this one cannot do."""

    sqlstate = "0A000"
