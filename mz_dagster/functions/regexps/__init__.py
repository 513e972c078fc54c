"""Regular expressions: PostgreSQL's advanced ones, and SQL's SIMILAR TO."""
