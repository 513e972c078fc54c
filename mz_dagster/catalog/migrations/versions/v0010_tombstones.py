"""Adds the tombstones of dropped objects; the rows of those that are there go as in any sweep."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Applies the migration."""
    op.create_table(
        "tombstone",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("timeline", sa.Text(), nullable=True),
        sa.Column("shard", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["timeline"], ["timeline.name"], name=op.f("fk_tombstone_timeline_timeline")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tombstone")),
        sa.UniqueConstraint("sequence", name=op.f("uq_tombstone_sequence")),
        sa.UniqueConstraint("shard", name=op.f("uq_tombstone_shard")),
    )
