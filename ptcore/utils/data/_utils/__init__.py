"""Collation of samples into batches, under PyTorch's module path."""
