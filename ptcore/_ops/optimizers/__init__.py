"""Steps and other updates over lists of tensors."""
