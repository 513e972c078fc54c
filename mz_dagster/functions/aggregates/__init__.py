"""What the results of aggregates are computed by; no SQL name leads here."""
