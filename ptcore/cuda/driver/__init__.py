"""What talks to the driver of CUDA and to its libraries, and the compiled half of the backend."""
