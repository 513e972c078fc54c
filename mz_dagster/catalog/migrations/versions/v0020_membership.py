"""Keeps which roles are members of others."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Applies the migration."""
    op.create_table(
        "membership",
        sa.Column("role", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("member", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.ForeignKeyConstraint(["role"], ["role.id"], name=op.f("fk_membership_role_role")),
        sa.ForeignKeyConstraint(["member"], ["role.id"], name=op.f("fk_membership_member_role")),
        sa.PrimaryKeyConstraint("role", "member", name=op.f("pk_membership")),
    )
