"""SQLAlchemy's dialect compliance suite, which `test_sqlalchemy_suite.py` runs by its own pytest."""
