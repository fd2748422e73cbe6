"""What `jobq bench` measures, and how: on a database of its own, with workers that are real processes."""
