"""Marks the table of changes, so that it is noticed if it is emptied and its numbers begin anew."""

from __future__ import annotations

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Applies the migration."""
    insert = sa.text("INSERT INTO changed (object, part, number) VALUES ('', :part, 0)")
    op.get_bind().execute(insert, {"part": secrets.token_hex(16)})
