"""Looks up companies at a paid provider and pushes what it finds to the CRMs of the customers who asked."""
