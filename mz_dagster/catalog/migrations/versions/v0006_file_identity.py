"""Adds what a bound file looked like to the file system when it was hashed last."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Applies the migration."""
    op.add_column("bound_file", sa.Column("identity", sa.Text(), nullable=True))
