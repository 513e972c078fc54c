"""Lets small batches be stored in the catalog itself."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Applies the migration."""
    op.create_table(
        "inlined",
        sa.Column("batch", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("batch", name=op.f("pk_inlined")),
    )
