"""CREATE, ALTER and DROP ROLE, GRANT and REVOKE of privileges and of roles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mz_dagster.adapter.access import InsufficientPrivilege, owner_name
from mz_dagster.adapter.names import Names
from mz_dagster.adapter.passwords import verifier_text
from mz_dagster.adapter.result import Result
from mz_dagster.adapter.sequence.context import Context
from mz_dagster.catalog import EVERYBODY, RoleRow
from mz_dagster.errors import ProgrammingError
from mz_dagster.formalism import GlobalId
from mz_dagster.notices import tell
from mz_dagster.sql import Name
from mz_dagster.sql.errors import DuplicateObject, UndefinedObject, WrongObjectKind
from mz_dagster.sql.role_statements import AlterRole, CreateRole, DropRole, Grant, GrantRole, Password, RoleName
from mz_dagster.sql.schemas import PUBLIC

_READABLE = ("table", "view", "materialized view", "source", "check")
"""The kinds of objects on which something can be granted."""


class DependentObjectsStillExist(ProgrammingError):
    """A role that something is still granted to."""

    sqlstate = "2BP01"


class InvalidGrant(ProgrammingError):
    """A role that would be a member of itself."""

    sqlstate = "0LP01"


def change_roles(
    context: Context, statement: CreateRole | AlterRole | DropRole | Grant | GrantRole, _: Sequence[object]
) -> Result:
    """Executes a statement about roles.

    Raises:
        DuplicateObject: There is a role of the name.
        UndefinedObject: There is none.
        DependentObjectsStillExist: Something is granted to a role that is to be dropped.
        InsufficientPrivilege: It is about another role than that of the session, which is not the owner's.
        InvalidGrant: A role would be a member of itself.
    """
    names = context.names
    match statement:
        case CreateRole():
            _create(names, statement)
            return Result("CREATE ROLE")
        case AlterRole():
            _alter(names, statement)
            return Result("ALTER ROLE")
        case DropRole():
            _drop(names, statement)
            return Result("DROP ROLE")
        case Grant():
            _grant(names, statement)
            return Result("REVOKE" if statement.revokes else "GRANT")
        case GrantRole():
            _grant_role(names, statement)
            return Result("REVOKE ROLE" if statement.revokes else "GRANT ROLE")


def _create(names: Names, statement: CreateRole) -> None:
    role = statement.role
    made = str(role.name) != owner_name() and names.engine.catalog.create_role(
        str(role.name), can_login=statement.can_login, verifier=_verifier(statement.password)
    )
    if not made:
        raise _duplicate(role)


def _alter(names: Names, statement: AlterRole) -> None:
    own = names.access.role
    role = _named(names, statement.role)
    if own is not None and (own.id != role.id or statement.can_login is not None or statement.new_name is not None):
        raise InsufficientPrivilege("permission denied to alter role", hint="A role may change its own password.")

    def changed(row: RoleRow) -> RoleRow:
        if statement.password is not None:
            row = replace(row, verifier=verifier)
        if statement.can_login is not None:
            row = replace(row, can_login=statement.can_login)
        return row if statement.new_name is None else replace(row, name=str(statement.new_name.name))

    verifier = _verifier(statement.password)
    new_name = statement.new_name
    if new_name is not None and new_name.name == owner_name():
        raise _duplicate(new_name)
    if names.engine.catalog.alter_role(role.name, changed) is None:
        raise _undefined(statement.role) if new_name is None else _duplicate(new_name)


def _drop(names: Names, statement: DropRole) -> None:
    for one in statement.roles:
        try:
            role = _named(names, one)
        except UndefinedObject:
            if statement.if_exists:
                tell(f'role "{one.name}" does not exist, skipping')
                continue
            raise
        granted = names.engine.catalog.drop_role(role)
        if granted:
            raise DependentObjectsStillExist(
                f'role "{role.name}" cannot be dropped because some objects depend on it',
                detail="\n".join(f"privileges for {row.kind} {row.name}" for row in granted),
                hint="REVOKE ALL ON them FROM it first.",
                position=one.offset + 1,
            )


def _grant(names: Names, statement: Grant) -> None:
    roles = [EVERYBODY if one.is_public else _named(names, one).id for one in statement.roles if not _is_owner(one)]
    objects: list[GlobalId] = []
    match statement.on:
        case "schema":
            for name in statement.names:
                _check_schema(names, name)
        case "database":
            _check_database(names, statement.names)
        case "all":
            for name in statement.names:
                _check_schema(names, name)
                rows = names.engine.catalog.objects()
                named = (row for row in rows if row.name is not None and row.schema == name.last)
                objects += [row.id for row in named if row.kind in _READABLE]
        case _:
            for name in statement.names:
                row = names.object(name)
                if row.kind not in _READABLE:
                    raise WrongObjectKind(
                        f'"{name}" is a {row.kind}', hint="Grant on what it is on.", position=name.offset + 1
                    )
                objects.append(row.id)
    if objects and not names.engine.catalog.grant(objects, roles, statement.letters, revokes=statement.revokes):
        raise UndefinedObject("a role does not exist any more")


def _grant_role(names: Names, statement: GrantRole) -> None:
    """Has roles be members of others, or not any more; the owner, who may do everything, need not be one."""
    groups = {_named(names, one).id: one for one in statement.groups}
    members = {_named(names, one).id: one for one in statement.members if not _is_owner(one)}
    if statement.revokes:
        names.engine.catalog.revoke_membership(groups, members)
        return
    done = names.engine.catalog.grant_membership(groups, members)
    if isinstance(done, tuple):
        group, member = groups[done[0]], members[done[1]]
        raise InvalidGrant(f'role "{group.name}" is a member of role "{member.name}"', position=group.offset + 1)
    if not done:
        raise UndefinedObject("a role does not exist any more")


def _check_schema(names: Names, name: Name) -> None:
    if name.last != PUBLIC:
        names.schema(name)


def _check_database(names: Names, databases: tuple[Name, ...]) -> None:
    for name in databases:
        if name.last != names.engine.project.name:
            raise UndefinedObject(f'database "{name}" does not exist', position=name.offset + 1)


def _verifier(password: Password | None) -> str | None:
    return None if password is None or password.text is None else verifier_text(password.text)


def _named(names: Names, role: RoleName) -> RoleRow:
    """Returns a role that there is, and that is not the owner.

    Raises:
        UndefinedObject: There is none of the name.
        InsufficientPrivilege: It is the owner, who is what the operating system says.
    """
    if role.is_public:
        raise _undefined(role)
    if role.name is None and names.access.role is not None:
        return names.access.role
    if _is_owner(role):
        raise InsufficientPrivilege(
            f'role "{owner_name()}" is the owner of the project',
            detail="Its password is in a file that the server names when it starts, and it may do everything.",
            position=role.offset + 1,
        )
    found = names.engine.catalog.role(str(role.name))
    if found is None:
        raise _undefined(role)
    return found


def _is_owner(role: RoleName) -> bool:
    return not role.is_public and role.name in (None, owner_name())


def _duplicate(role: RoleName) -> DuplicateObject:
    return DuplicateObject(f'role "{role.name}" already exists', position=role.offset + 1)


def _undefined(role: RoleName) -> UndefinedObject:
    return UndefinedObject(f'role "{role.name}" does not exist', position=role.offset + 1)
