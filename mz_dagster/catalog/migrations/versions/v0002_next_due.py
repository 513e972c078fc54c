"""Adds the time at which a collection changes next by itself."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Applies the migration."""
    op.add_column("collection", sa.Column("next_due", sa.BigInteger(), nullable=True))
