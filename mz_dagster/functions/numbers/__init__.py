"""Numbers: integers, floating-point numbers, and numerics with and without a scale."""
