"""Names, and how many there are: which is counted beside them, so that one that is lost is not taken for free.

Whoever finds no object under a name, gives one or takes one away compares. An object that lost its name behind the
engine's back would else be made anew, empty, by the next `apply` of the project's files.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from mz_dagster.catalog.errors import CatalogDamaged, NameTaken
from mz_dagster.catalog.schema import NAME, PROJECT
from mz_dagster.formalism import GlobalId

#: Built once: building a statement takes longer than running it.
_DENOTED = select(NAME.c.name).where(NAME.c.name == bindparam("called"))
_FOUND = select(func.count()).select_from(NAME).scalar_subquery()
_COUNTED = select(PROJECT.c.names, _FOUND.label("found"))
_GIVE = insert(NAME)
_ONE_MORE = update(PROJECT).where(PROJECT.c.names == _FOUND).values(names=PROJECT.c.names + 1)
_TAKE = delete(NAME).where(NAME.c.object.in_(bindparam("objects", expanding=True)))
_FEWER = update(PROJECT).values(names=PROJECT.c.names - bindparam("taken"))


def check_names(connection: Connection) -> None:
    """Returns if there are as many names as were given and not taken away.

    Raises:
        CatalogDamaged: Some are lost.
    """
    row = connection.execute(_COUNTED).one_or_none()
    if row is not None and row.found != row.names:
        raise CatalogDamaged(
            "the catalog has lost names of objects", detail=f"There should be {row.names}, and there are {row.found}."
        )


def give_name(connection: Connection, name: str, object: GlobalId) -> None:
    """Has a name denote an object.

    Raises:
        NameTaken: It denotes something already.
        CatalogDamaged: Names are lost.
    """
    if connection.execute(_DENOTED, {"called": name}).first() is not None:
        raise NameTaken(name)
    if not connection.execute(_ONE_MORE).rowcount:
        check_names(connection)
    connection.execute(_GIVE, {"name": name, "object": object})


def take_names(connection: Connection, objects: Collection[GlobalId]) -> int:
    """Takes the names of objects away, and returns how many they had.

    Raises:
        CatalogDamaged: Names are lost.
    """
    if not objects:
        return 0
    check_names(connection)
    taken = connection.execute(_TAKE, {"objects": list(objects)}).rowcount
    connection.execute(_FEWER, {"taken": taken})
    return taken
