"""Memory of devices and page-locked memory of the host: the caching allocators, their pools and their statistics."""
