"""`jobq top`: what runs now, drawn anew each second."""
