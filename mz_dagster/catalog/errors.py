"""The catalog's errors: broken rules, a catalog that cannot be used, and a broken invariant of our own."""

from __future__ import annotations

from collections.abc import Sequence

from mz_dagster.errors import InternalError, OperationalError, ProgrammingError


class NameTaken(ProgrammingError):
    """Reports that a name denotes another object already."""

    sqlstate = "42710"

    def __init__(self, name: str) -> None:
        super().__init__(
            f'name "{name}" is taken', hint="Choose another name, or drop the object that has this one first."
        )
        self.name = name


class UnknownObject(ProgrammingError):
    """Reports a GlobalId that denotes nothing, or nothing any more."""

    sqlstate = "42704"

    def __init__(self, id: str, *, dropped: bool = False) -> None:
        super().__init__(
            f'object "{id}" {"was dropped" if dropped else "does not exist"}',
            hint="Look its name up again; ids are never reused.",
        )


class StillNeeded(ProgrammingError):
    """Reports that an object cannot be dropped because others depend on it."""

    sqlstate = "2BP01"

    def __init__(self, name: str, dependants: Sequence[str]) -> None:
        super().__init__(
            f'cannot drop "{name}" because other objects depend on it',
            detail=f"Dependants: {', '.join(dependants)}.",
            hint="Use DROP ... CASCADE to drop the dependent objects too.",
        )
        self.dependants = tuple(dependants)


class WrongDefinition(ProgrammingError):
    """Reports an object that cannot be created as described."""

    sqlstate = "42P16"


class SinceBehindInput(ProgrammingError):
    """Reports that an object would be readable at times at which one of its inputs is not."""

    sqlstate = "55000"


class UnknownTimeline(ProgrammingError):
    """Reports a timeline that was never declared."""

    sqlstate = "42704"

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(
            f'timeline "{name}" does not exist',
            detail=f"Declared timelines: {', '.join(known) or 'none'}.",
            hint="Declare it in the project's settings.",
        )


class TimelineDiffers(ProgrammingError):
    """Reports that a timeline was declared with another lattice before."""

    sqlstate = "42710"


class FileAlreadyBound(ProgrammingError):
    """Reports that a binding names a file that an earlier binding of the source names."""

    sqlstate = "23505"


class WrongSeal(ProgrammingError):
    """Reports a seal that no state of the catalog could accept."""

    sqlstate = "22023"


class UpperBeyondInput(InternalError):
    """Reports that a seal would move an output's upper past an input's (constraint W)."""


class UnknownWriter(ProgrammingError):
    """Reports a writer that was never registered, or is retired."""

    sqlstate = "55000"


class UnknownLease(ProgrammingError):
    """Reports a lease that was released, or expired and was swept."""

    sqlstate = "55000"


class UnknownCapability(ProgrammingError):
    """Reports a token that denotes no capability: it was dropped, or never handed out."""

    sqlstate = "28000"

    def __init__(self, label: str) -> None:
        super().__init__(
            f'no capability "{label}"',
            detail="It was dropped, by itself or with its collection, it was handed over to a view, it ended at {}, "
            "or it was never handed out.",
            hint="Acquire a new one.",
        )


class WrongRight(ProgrammingError):
    """Reports a capability that grants reading where one that grants writing is needed, or the other way round."""

    sqlstate = "28000"

    def __init__(self, label: str, *, needed: str) -> None:
        super().__init__(f'capability "{label}" grants no right to {needed}', hint=f"Use a {needed} capability.")


class CapabilityExpired(ProgrammingError):
    """Reports a capability whose lease ran out; it holds nothing back any more."""

    sqlstate = "28000"

    def __init__(self, label: str) -> None:
        super().__init__(
            f'capability "{label}" has expired',
            detail="It holds nothing back any more.",
            hint="Acquire a new one, and renew it before its lease ends.",
        )


class FrontierNotHeld(ProgrammingError):
    """Reports a frontier that a capability cannot be acquired at or downgraded to, or at which a view cannot begin."""

    sqlstate = "22023"


class InputNotHeld(ProgrammingError):
    """Reports a view that reads a collection on which no read capability was presented."""

    sqlstate = "28000"

    def __init__(self, id: str) -> None:
        super().__init__(
            f'no capability to read "{id}", from which the view is computed',
            hint=f'Acquire capabilities on "{id}", and present that to read with the others.',
        )


class CatalogUnavailable(OperationalError):
    """Reports that the catalog's database cannot be reached, read or written."""

    sqlstate = "58030"


class CatalogBusy(OperationalError):
    """Reports that another process held the catalog's write lock for too long; nothing happened."""

    sqlstate = "55P03"


class CatalogTaken(ProgrammingError):
    """Reports that a backup cannot be restored into a catalog, because that holds something already."""

    sqlstate = "55000"

    def __init__(self) -> None:
        super().__init__(
            "the catalog is not empty",
            detail="It holds timelines or objects, which a restore would mix with those of the backup.",
            hint="Name a database that holds no catalog yet.",
        )


class CatalogTooOld(ProgrammingError):
    """Reports a catalog that must be migrated before this version of the code can read it."""

    sqlstate = "0A000"

    def __init__(self, found: str) -> None:
        super().__init__(
            "the catalog was made by an older version",
            detail=f'Its schema is "{found}"; only what may write the catalog migrates it.',
            hint='"mz-dagster frontiers", for one, opens it and migrates it, and changes nothing else.',
        )


class CatalogTooNew(ProgrammingError):
    """Reports that a newer version of the code has migrated the catalog."""

    sqlstate = "0A000"

    def __init__(self, found: str) -> None:
        super().__init__(
            "the catalog was made by a newer version",
            detail=f'Its schema is "{found}", which this version does not know.',
            hint="Upgrade mz_dagster to the version that last used this project, or a later one.",
        )
