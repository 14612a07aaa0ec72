"""The op table: rows, expressions, signatures, registration."""
