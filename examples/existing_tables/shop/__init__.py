"""A shop with tables and orders from before it had jobs."""
