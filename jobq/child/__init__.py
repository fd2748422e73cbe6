"""The program of a child process: `python -m jobq.child`, started by the process executor alone."""
