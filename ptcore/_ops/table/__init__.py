"""What is known of ops: rows, expressions, signatures, registration."""
