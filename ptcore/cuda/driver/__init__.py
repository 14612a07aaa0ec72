"""The calls of CUDA's driver and of its libraries, and the compiled half of the backend."""
