"""Tensors and everything else: lists, NumPy, DLPack, CUDA arrays, copies and pickles, printing."""
