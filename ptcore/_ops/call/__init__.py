"""Calling an op: bind, offer, read, shape, allocate, run, record."""
