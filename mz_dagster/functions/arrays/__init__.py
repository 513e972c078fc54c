"""Arrays and records, and the functions that return rows, which here are arrays."""
