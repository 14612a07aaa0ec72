"""What torch warns of in test_parity_*.py, and ptcore where it says the same; all other warnings are errors there too.

torch says most of these once in a process, at whichever test comes first: so they stand here for all files.
"""
_BEGINNINGS = [                         # (category, how the message begins: a regular expression without colons)
    *[("UserWarning", text) for text in (
        r"torch\.\w+ is deprecated (in favor of|and will be removed)", r"torch\.quantize_per_tensor, .* are deprecated",
        r"Using torch\.cross without specifying the dim arg", r"torch\.meshgrid. in an upcoming release",
        r"To copy construct from a tensor", r"Using a non-tuple sequence for multidimensional indexing",
        r"index_reduce\(\) is in beta", r"Sparse CSR tensor support is in beta", r"TypedStorage is deprecated",
        r"ComplexHalf support is experimental", r"Casting complex values to real discards the imaginary part",
        r"Complex modules are a new feature", r"Default grid_sample and affine_grid behavior has changed",
        r"Since version 1\.3\.0, affine_grid behavior has changed", r"Using padding='same' with even kernel lengths",
        r"`nn\.functional\.upsample\w*` is deprecated", r"Initializing zero-element tensors is a no-op",
        r"enable_nested_tensor is True, but", r"Support for mismatched key_padding_mask",
        r"MultiheadAttention. key_padding_mask and the other mask", r"volatile was removed",
        r"Detected pickle protocol [45] in the checkpoint", r"Using backward\(\) with create_graph=True")],
    *[("FutureWarning", text) for text in (
        r"`[\w.]+` (is|has been|is now) deprecated", r"backward. grad_variables is deprecated")],
    *[("DeprecationWarning", text) for text in (
        r"`torch\.jit\.\w+` is deprecated", r"<class '.*'> should not be instantiated")]]
FILTERS = [f"ignore:{text}:{category}" for category, text in _BEGINNINGS]
