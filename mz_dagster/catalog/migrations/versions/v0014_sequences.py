"""Keeps, for each column that generates its values, the last one that was handed out."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Applies the migration."""
    op.create_table(
        "sequence",
        sa.Column("object", sa.Text(), nullable=False),
        sa.Column("column", sa.Text(), nullable=False),
        sa.Column("last", sa.BigInteger()),
        sa.ForeignKeyConstraint(["object"], ["object.id"], name=op.f("fk_sequence_object_object")),
        sa.PrimaryKeyConstraint("object", "column", name=op.f("pk_sequence")),
    )
