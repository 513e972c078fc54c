"""Keeps which replicas compute beside the leaders."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Applies the migration."""
    op.create_table(
        "compute_replica",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("engine", sa.Text(), nullable=False),
        sa.Column("started_ms", sa.BigInteger(), nullable=False),
        sa.Column("until_ms", sa.BigInteger(), nullable=False),
        sa.Column("process", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_compute_replica")),
    )
