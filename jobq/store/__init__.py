"""Functions (connection, ...) -> values that execute the statements, written once, for sync and async callers."""
