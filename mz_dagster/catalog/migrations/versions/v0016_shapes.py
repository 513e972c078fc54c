"""Lets a table be altered under what reads it: the columns of its collection, and the shapes that it had over them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Applies the migration."""
    op.add_column("object", sa.Column("shapes", sa.Text()))
