"""Names what can be wrong with a file source as a whole; a bad row is data, not one of these."""

from __future__ import annotations

from mz_dagster.errors import OperationalError


class SourceUnreadable(OperationalError):
    """A source's folder or one of its files cannot be read; nothing is lost, ask again when it can."""

    sqlstate = "58030"


class BoundFileChanged(OperationalError):
    """A file which is bound to a tick is gone or has another content.

    A binding is definite: until the tick is sealed, the collection's content at it is computed from that file, and
    from then on what lies under its path must be what the content was computed from.
    """

    sqlstate = "58P01"

    def __init__(self, path: str, detail: str) -> None:
        super().__init__(
            f'bound file "{path}" has changed',
            detail=detail,
            hint="Restore the file as it was, or drop and recreate the source. New content belongs into a new file.",
        )
        self.path = path
