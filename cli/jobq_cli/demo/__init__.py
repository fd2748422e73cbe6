"""The demo: a small shop whose jobs run, fail, die and are rescued, on a real PostgreSQL, by real workers."""
