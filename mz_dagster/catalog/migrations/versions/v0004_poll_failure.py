"""Adds why a source's last poll failed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Applies the migration."""
    op.add_column("collection", sa.Column("poll_failure", sa.Text(), nullable=True))
