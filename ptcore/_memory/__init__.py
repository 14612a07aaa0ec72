"""Memory of tensors: the allocator, page-locked host memory, segments that processes share."""
