"""Names, and how many there are: which is counted beside them, so that one that is lost is not taken for free.

Whoever finds no object under a name, gives one or takes one away compares. An object that lost its name behind the
engine's back would else be made anew, empty, by the next `apply` of the project's files.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, delete, func, insert, select, update

from mz_dagster.catalog.errors import CatalogDamaged, NameTaken
from mz_dagster.catalog.schema import NAME, PROJECT
from mz_dagster.formalism import GlobalId


def check_names(connection: Connection) -> None:
    """Returns if there are as many names as were given and not taken away.

    Raises:
        CatalogDamaged: Some are lost.
    """
    counted = select(PROJECT.c.names, select(func.count()).select_from(NAME).scalar_subquery().label("found"))
    row = connection.execute(counted).one_or_none()
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
    if connection.execute(select(NAME.c.name).where(NAME.c.name == name)).first() is not None:
        raise NameTaken(name)
    check_names(connection)
    connection.execute(insert(NAME).values(name=name, object=object))
    connection.execute(update(PROJECT).values(names=PROJECT.c.names + 1))


def take_names(connection: Connection, objects: Collection[GlobalId]) -> int:
    """Takes the names of objects away, and returns how many they had.

    Raises:
        CatalogDamaged: Names are lost.
    """
    check_names(connection)
    taken = connection.execute(delete(NAME).where(NAME.c.object.in_(list(objects)))).rowcount
    connection.execute(update(PROJECT).values(names=PROJECT.c.names - taken))
    return taken
