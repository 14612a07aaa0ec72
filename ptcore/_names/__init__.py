"""Public names: modules that the build writes from the op rows, one for each namespace."""
