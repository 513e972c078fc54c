"""Has the database note which objects and collections changed, and in which order."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from mz_dagster.catalog.change_triggers import triggers

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Applies the migration."""
    op.create_table(
        "changed",
        sa.Column("object", sa.Text(), nullable=False),
        sa.Column("part", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("object", "part", name="pk_changed"),
    )
    op.create_index("ix_changed_number", "changed", ["number"])
    for statement in triggers(sqlite=op.get_bind().dialect.name == "sqlite"):
        op.execute(statement)
