"""Lets capabilities be such to write; those that are there are such to read."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Applies the migration."""
    op.add_column("capability", sa.Column("writes", sa.Boolean(), nullable=False, server_default=sa.false()))
