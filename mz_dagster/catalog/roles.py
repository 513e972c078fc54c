"""Roles, what they are granted on objects, and which are members of others, whose privileges are theirs, too.

The project's owner is none of them: nobody needs to be told what the owner may do. Privileges are an option of the
object that they are on, so that they go with it, and every process sees them in the state that it has in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from sqlalchemy import Connection, delete, insert, or_, select, update

from mz_dagster.catalog.database import Transactions, next_ids, recalled
from mz_dagster.catalog.objects import set_privileges, undropped
from mz_dagster.catalog.rows import LETTERS, PRIVILEGES, ObjectRow, RoleRow
from mz_dagster.catalog.schema import MEMBERSHIP, OBJECT, ROLE
from mz_dagster.catalog.stored_objects import object_of, objects_query
from mz_dagster.formalism import GlobalId

EVERYBODY = 0
"""The number of all roles, of today and to come, which no role has."""


class Roles(Transactions):
    """The part of the catalog that knows who may do what."""

    @recalled
    def roles(self) -> tuple[RoleRow, ...]:
        """Returns all roles, in order of creation."""
        with self._database.read() as connection:
            return _all(connection)

    @recalled
    def held_roles(self, role: int) -> frozenset[int]:
        """Returns the roles by whose privileges a role acts: its own, those that it is a member of, and everybody's."""
        with self._database.read() as connection:
            return frozenset({EVERYBODY, *_reached(role, {one.id: one.groups for one in _all(connection)})})

    @recalled
    def role(self, name: str) -> RoleRow | None:
        """Returns the role of a name, or None."""
        with self._database.read() as connection:
            return _named(connection, name)

    def create_role(self, name: str, *, can_login: bool, verifier: str | None) -> RoleRow | None:
        """Creates a role; returns None, and nothing has happened, if there is one of the name."""
        with self._database.write() as connection:
            if _named(connection, name) is not None:
                return None
            (id,) = next_ids(connection, "role", 1)
            connection.execute(insert(ROLE).values(id=id, name=name, can_login=can_login, verifier=verifier))
            return RoleRow(id, name, can_login, verifier)

    def alter_role(self, name: str, change: Callable[[RoleRow], RoleRow]) -> RoleRow | None:
        """Makes a role what a function makes of it, but for its number.

        Returns None, and nothing has happened, if there is no role of the name; or if another has the name that it
        would get.
        """
        with self._database.write() as connection:
            row = _named(connection, name)
            if row is None:
                return None
            changed = change(row)
            if changed.name != name and _named(connection, changed.name) is not None:
                return None
            values = {"name": changed.name, "can_login": changed.can_login, "verifier": changed.verifier}
            connection.execute(update(ROLE).where(ROLE.c.id == row.id).values(**values))
            return changed

    def drop_role(self, role: RoleRow) -> tuple[ObjectRow, ...]:
        """Drops a role to which nothing is granted; returns the objects on which something is, and drops nothing."""
        with self._database.write() as connection:
            query = objects_query().where(OBJECT.c.dropped.is_(False), OBJECT.c.options.contains(PRIVILEGES))
            rows = (object_of(row, {}) for row in connection.execute(query.order_by(OBJECT.c.sequence)))
            granted = [one for one in rows if role.id in one.privileges]
            if not granted:
                of_it = or_(MEMBERSHIP.c.role == role.id, MEMBERSHIP.c.member == role.id)
                connection.execute(delete(MEMBERSHIP).where(of_it))
                connection.execute(delete(ROLE).where(ROLE.c.id == role.id))
            return tuple(granted)

    def grant(self, objects: Collection[GlobalId], roles: Collection[int], letters: str, *, revokes: bool) -> bool:
        """Grants privileges on objects to roles, or revokes them.

        Args:
            objects: The objects.
            roles: The numbers of the roles.
            letters: The privileges, by PostgreSQL's letters.
            revokes: Whether they are revoked.

        Returns:
            False, and nothing has happened, if a role has gone.

        Raises:
            UnknownObject: An object was dropped.
        """
        with self._database.write() as connection:
            known = {EVERYBODY, *connection.execute(select(ROLE.c.id)).scalars()}
            if not known.issuperset(roles):
                return False
            for id in sorted(objects):
                row = undropped(connection, id)
                granted = {**row.privileges}
                for role in sorted(roles):
                    kept = set(granted.get(role, ""))
                    kept = kept - set(letters) if revokes else kept | set(letters)
                    granted[role] = "".join(one for one in LETTERS if one in kept)
                set_privileges(connection, row, {role: held for role, held in granted.items() if held})
        return True

    def grant_membership(self, roles: Collection[int], members: Collection[int]) -> tuple[int, int] | bool:
        """Makes roles members of others, which some may be already.

        Args:
            roles: The numbers of the roles that get members.
            members: The numbers of their members.

        Returns:
            True; or False, and nothing has happened, if a role has gone; or, likewise, a role and a member of which the
            former is the latter, or a member of it.
        """
        with self._database.write() as connection:
            groups = {one.id: set(one.groups) for one in _all(connection)}
            if not groups.keys() >= {*roles, *members}:
                return False
            for role in sorted(roles):
                for member in sorted(members):
                    if member in _reached(role, groups):
                        return role, member
                    if role not in groups[member]:
                        groups[member].add(role)
                        connection.execute(insert(MEMBERSHIP).values(role=role, member=member))
        return True

    def revoke_membership(self, roles: Collection[int], members: Collection[int]) -> None:
        """Ends the membership of roles in others, as far as there is one by a grant of its own."""
        with self._database.write() as connection:
            named = MEMBERSHIP.c.role.in_(roles), MEMBERSHIP.c.member.in_(members)
            connection.execute(delete(MEMBERSHIP).where(*named))


def _reached(role: int, groups: Mapping[int, Collection[int]]) -> set[int]:
    """Returns a role, what it is a member of, what that is a member of, and so on."""
    found, ahead = {role}, [role]
    while ahead:
        new = set(groups.get(ahead.pop(), ())) - found
        found |= new
        ahead += new
    return found


def _all(connection: Connection) -> tuple[RoleRow, ...]:
    groups: dict[int, set[int]] = {}
    for role, member in connection.execute(select(MEMBERSHIP.c.role, MEMBERSHIP.c.member)):
        groups.setdefault(member, set()).add(role)
    rows = connection.execute(select(ROLE).order_by(ROLE.c.id))
    return tuple(
        RoleRow(row.id, row.name, row.can_login, row.verifier, frozenset(groups.get(row.id, ()))) for row in rows
    )


def _named(connection: Connection, name: str) -> RoleRow | None:
    row = connection.execute(select(ROLE).where(ROLE.c.name == name)).first()
    if row is None:
        return None
    groups = connection.execute(select(MEMBERSHIP.c.role).where(MEMBERSHIP.c.member == row.id)).scalars()
    return RoleRow(row.id, row.name, row.can_login, row.verifier, frozenset(groups))
