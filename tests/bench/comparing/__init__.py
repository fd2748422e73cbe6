"""Side by side with other queues: one step of one queue at a time, in rounds (tests/bench/compare.py)."""
