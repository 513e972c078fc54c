"""Lets batches say which files they have, with a hash of each; of those that are there nobody knows."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Applies the migration."""
    op.add_column("batch", sa.Column("file_list", sa.Text(), nullable=True))
