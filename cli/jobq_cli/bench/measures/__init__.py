"""The measures, one module for what belongs together."""
