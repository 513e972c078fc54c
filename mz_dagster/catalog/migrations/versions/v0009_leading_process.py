"""Adds which process leads a timeline, so that others can find out whether it is dead."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Applies the migration."""
    op.add_column("timeline", sa.Column("process", sa.Text(), nullable=True))
