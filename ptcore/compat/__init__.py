"""Other libraries' names for ptcore; ``compat.torch`` lets programs that import PyTorch run on ptcore."""
