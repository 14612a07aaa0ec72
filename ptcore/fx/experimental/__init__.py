"""``proxy_tensor.make_fx``: any function as a graph of rows."""
