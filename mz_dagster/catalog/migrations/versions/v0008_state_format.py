"""Adds which format the state outside the catalog has, and which release wrote it last; what is there has the first."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Applies the migration."""
    op.add_column("project", sa.Column("state_format", sa.Integer(), nullable=False, server_default="1"))
    op.add_column("project", sa.Column("release", sa.Text(), nullable=True))
