"""Keeps, for each source whose transport has offsets, up to which one it was read at each tick."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Applies the migration."""
    op.create_table(
        "bound_offset",
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("tick", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["source"], ["object.id"], name=op.f("fk_bound_offset_source_object")),
        sa.PrimaryKeyConstraint("source", "tick", name=op.f("pk_bound_offset")),
    )
