"""SQLAlchemy's compliance suite, but for reflection.

Most tests of that make foreign keys and ask for them; `test_sqlalchemy.py` compares what it finds with PostgreSQL's.
"""

from __future__ import annotations

from sqlalchemy.testing.suite.test_cte import *  # noqa: F403
from sqlalchemy.testing.suite.test_ddl import *  # noqa: F403
from sqlalchemy.testing.suite.test_dialect import *  # noqa: F403
from sqlalchemy.testing.suite.test_insert import *  # noqa: F403
from sqlalchemy.testing.suite.test_results import *  # noqa: F403
from sqlalchemy.testing.suite.test_rowcount import *  # noqa: F403
from sqlalchemy.testing.suite.test_select import *  # noqa: F403
from sqlalchemy.testing.suite.test_sequence import *  # noqa: F403
from sqlalchemy.testing.suite.test_table_via_select import *  # noqa: F403
from sqlalchemy.testing.suite.test_types import *  # noqa: F403
from sqlalchemy.testing.suite.test_unicode_ddl import *  # noqa: F403
from sqlalchemy.testing.suite.test_update_delete import *  # noqa: F403
