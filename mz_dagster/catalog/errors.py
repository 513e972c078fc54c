"""The catalog's errors: broken rules, a catalog that cannot be used, and a broken invariant of our own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mz_dagster.errors import DamageError, InternalError, OperationalError, ProgrammingError
from mz_dagster.version import __version__, is_later


class NameTaken(ProgrammingError):
    """A name denotes another object already."""

    sqlstate = "42P07"

    def __init__(self, name: str) -> None:
        super().__init__(
            f'name "{name}" is taken', hint="Choose another name, or drop the object that has this one first."
        )
        self.name = name


class UnknownObject(ProgrammingError):
    """A GlobalId that denotes nothing, or nothing any more."""

    sqlstate = "42704"

    def __init__(self, id: str, *, dropped: bool = False) -> None:
        super().__init__(
            f'object "{id}" {"was dropped" if dropped else "does not exist"}',
            hint="Look its name up again; ids are never reused.",
        )


class TableAltered(UnknownObject):
    """A table is not any more what something was bound to; nothing was done."""

    sqlstate = "40001"

    def __init__(self, id: str, version: int) -> None:
        ProgrammingError.__init__(
            self, f'table "{id}" has just been altered, for the {version}. time', hint="Bind its name again."
        )


class ReferencesChanged(UnknownObject):
    """A table has come to refer to another since it was looked which ones do; nothing was done."""

    sqlstate = "40001"

    def __init__(self, number: int) -> None:
        ProgrammingError.__init__(
            self, f"a table has just come to refer to another, for the {number}. time", hint="Look again which ones do."
        )


class Redefined(UnknownObject):
    """A connection or a secret was given another definition meanwhile; nothing was done."""

    sqlstate = "40001"

    def __init__(self, name: str) -> None:
        ProgrammingError.__init__(
            self, f'"{name}" has just been altered by somebody else', hint="Look at it again: SHOW CREATE shows it."
        )


class TypeAltered(UnknownObject):
    """What depends on a type was bound to the values that it had before it was given another; nothing was done."""

    sqlstate = "40001"

    def __init__(self, id: str, number: int) -> None:
        ProgrammingError.__init__(
            self,
            f'a type that "{id}" depends on has just been given a value',
            detail=f"That was change {number}.",
            hint="Bind its name again.",
        )


class StillNeeded(ProgrammingError):
    """An object cannot be dropped because others depend on it."""

    sqlstate = "2BP01"

    def __init__(self, name: str, dependants: Sequence[str]) -> None:
        super().__init__(
            f'cannot drop "{name}" because other objects depend on it',
            detail=f"Dependants: {', '.join(dependants)}.",
            hint="Use DROP ... CASCADE to drop the dependent objects too.",
        )
        self.dependants = tuple(dependants)


class WrongDefinition(ProgrammingError):
    """An object that cannot be created as described."""

    sqlstate = "42P16"


class SinceBehindInput(ProgrammingError):
    """An object would be readable at times at which one of its inputs is not."""

    sqlstate = "55000"


class UnknownTimeline(ProgrammingError):
    """A timeline that was never declared."""

    sqlstate = "42704"

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(
            f'timeline "{name}" does not exist',
            detail=f"Declared timelines: {', '.join(known) or 'none'}.",
            hint="Declare it in the project's settings.",
        )


class TimelineDiffers(ProgrammingError):
    """A timeline was declared with another lattice before."""

    sqlstate = "42710"


class FileAlreadyBound(ProgrammingError):
    """A binding names a file that an earlier binding of the source names."""

    sqlstate = "23505"


class WrongSeal(ProgrammingError):
    """A seal that no state of the catalog could accept."""

    sqlstate = "22023"


class UpperBeyondInput(InternalError):
    """A seal would move an output's upper past an input's (constraint W)."""


class UnknownWriter(ProgrammingError):
    """A writer that was never registered, or is retired."""

    sqlstate = "55000"


class UnknownLease(ProgrammingError):
    """A lease that was released, or expired and was swept."""

    sqlstate = "55000"

    def __init__(self, lease: int) -> None:
        super().__init__(f"lease {lease} is over", hint="Take a new one, and read again.")


class UnknownCapability(ProgrammingError):
    """A token that denotes no capability: it was dropped, or never handed out."""

    sqlstate = "28000"

    def __init__(self, label: str) -> None:
        super().__init__(
            f'no capability "{label}"',
            detail="It was dropped, by itself or with its collection, it was handed over to a view, it ended at {}, "
            "or it was never handed out.",
            hint="Acquire a new one.",
        )


class WrongRight(ProgrammingError):
    """A capability that grants reading where one that grants writing is needed, or the other way round."""

    sqlstate = "28000"

    def __init__(self, label: str, *, needed: str) -> None:
        super().__init__(f'capability "{label}" grants no right to {needed}', hint=f"Use a {needed} capability.")


class CapabilityExpired(ProgrammingError):
    """A capability whose lease ran out; it holds nothing back any more."""

    sqlstate = "28000"

    def __init__(self, label: str) -> None:
        super().__init__(
            f'capability "{label}" has expired',
            detail="It holds nothing back any more.",
            hint="Acquire a new one, and renew it before its lease ends.",
        )


class FrontierNotHeld(ProgrammingError):
    """A frontier that a capability cannot be acquired at or downgraded to, or at which a view cannot begin."""

    sqlstate = "22023"


class InputNotHeld(ProgrammingError):
    """A view that reads a collection on which no read capability was presented."""

    sqlstate = "28000"

    def __init__(self, id: str) -> None:
        super().__init__(
            f'no capability to read "{id}", from which the view is computed',
            hint=f'Acquire capabilities on "{id}", and present that to read with the others.',
        )


class CatalogUnavailable(OperationalError):
    """The catalog's database cannot be reached, read or written.

    Attributes:
        is_outside: Whether that is because of what the database lies on, such as a full disk, a right that is missing
            or a server that is away: nothing says then that the catalog is damaged.
    """

    sqlstate = "58030"
    is_outside = False


class CatalogReadOnly(CatalogUnavailable):
    """A change of a project whose catalog's file, or the folder that it is in, cannot be written."""

    sqlstate = "25006"

    def __init__(self, path: Path) -> None:
        super().__init__(
            f'the project is read-only: its catalog "{path}" cannot be written',
            hint="Give this user the right to write to it and to the folders of the project, or work on a copy.",
        )


class OtherCatalog(OperationalError):
    """The catalog of a project's shards is not where its settings say; nothing was made there."""

    sqlstate = "58030"

    def __init__(self, url: str, project: str, found: str | None) -> None:
        super().__init__(
            f'the catalog at "{url}" is not the one of this project\'s shards',
            detail=f"They are of project {project}; "
            f"{'there is no catalog there' if found is None else f'that catalog is of {found}'}.",
            hint="Correct catalog.url in mz.toml; if the catalog is lost, restore a backup.",
        )


class CatalogBusy(OperationalError):
    """Another process held the catalog's write lock for too long; nothing happened."""

    sqlstate = "55P03"


class CatalogTaken(ProgrammingError):
    """A backup cannot be restored into a catalog, because that holds something already."""

    sqlstate = "55000"

    def __init__(self) -> None:
        super().__init__(
            "the catalog is not empty",
            detail="It holds timelines or objects, which a restore would mix with those of the backup.",
            hint="Name a database that holds no catalog yet.",
        )


class CatalogDamaged(DamageError):
    """Rows or tables of the catalog are gone that must be there by what else there is."""


class ChangesLost(CatalogDamaged):
    """The table by which processes know what changed was emptied."""

    def __init__(self) -> None:
        super().__init__(
            "the catalog does not say any more what changed in it",
            detail='Its table "changed" was emptied; "mz-dagster doctor --repair" begins it anew.',
        )


class OracleBehind(CatalogDamaged):
    """A timeline's oracle was set back, so that a read at it would miss acknowledged writes."""

    def __init__(self, timeline: str, read_ts: int, closed: int) -> None:
        super().__init__(
            f'the oracle of timeline "{timeline}" was set back',
            detail=f"It stands at {read_ts}, and {closed} is readable already; "
            '"mz-dagster doctor --repair" advances it.',
        )


class CatalogTooOld(ProgrammingError):
    """A catalog that must be migrated before this version of the code can read it."""

    sqlstate = "0A000"

    def __init__(self, found: str) -> None:
        super().__init__(
            "the catalog was made by an older version",
            detail=f'Its schema is "{found}"; only what may write the catalog migrates it.',
            hint='"mz-dagster frontiers", for one, opens it and migrates it, and changes nothing else.',
        )


class StateTooNew(ProgrammingError):
    """A newer release of the code writes this project's state in a format of its own."""

    sqlstate = "0A000"

    def __init__(self, found: int, release: str | None) -> None:
        super().__init__(
            f"the state of this project was written by {_release(release, 'a newer release')} of mz_dagster, "
            f"and this is {__version__}",
            detail=f"Its format is {found}, which this release does not know.",
            hint="Use that release, or a later one.",
        )


class StateTooOld(ProgrammingError):
    """No migration leads from the format of a project's state to that of this release."""

    sqlstate = "0A000"

    def __init__(self, found: int, release: str | None) -> None:
        super().__init__(
            f"the state of this project was written by {_release(release, 'an old release')} of mz_dagster, "
            f"too long before {__version__}",
            detail=f"Its format is {found}, from which this release knows no migration.",
            hint="Open it with a release between the two first.",
        )


def _release(found: str | None, otherwise: str) -> str:
    return otherwise if found is None else f"release {found}"


class CatalogTooNew(ProgrammingError):
    """A newer version of the code has migrated the catalog."""

    sqlstate = "0A000"

    def __init__(self, found: str, release: str | None = None) -> None:
        # Between two releases the schema may change without the number.
        is_told = release is not None and is_later(release, __version__)
        made_by = f"{_release(release, 'a newer version')}, and this is {__version__}"
        super().__init__(
            f"the catalog was made by {made_by}" if is_told else "the catalog has a newer schema than this version's",
            detail=f'Its schema is "{found}", which this version, {__version__}, does not know.',
            hint="Upgrade mz_dagster to the version that last used this project, or a later one.",
        )
