"""Adds which process holds a lease to read or to write batches, so that others can find out whether it is dead."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Applies the migration."""
    for table in ("writer", "lease"):
        op.add_column(table, sa.Column("process", sa.Text(), nullable=True))
