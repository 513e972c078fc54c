"""Keeps who may connect besides the owner; what each may do is an option of the objects."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Applies the migration."""
    op.create_table(
        "role",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("can_login", sa.Boolean(), nullable=False),
        sa.Column("verifier", sa.Text()),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_role")),
        sa.UniqueConstraint("name", name=op.f("uq_role_name")),
    )
    counter = sa.table("counter", sa.column("name", sa.Text()), sa.column("last", sa.BigInteger()))
    op.execute(counter.insert().values(name="role", last=0))
