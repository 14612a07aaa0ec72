"""Memory of tensors: the allocator and page-locked host memory."""
