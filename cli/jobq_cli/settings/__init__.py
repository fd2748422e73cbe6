"""What `jobq run` is told: by pyproject.toml, by the environment, by its command line; each later one wins."""
