"""Where CUDA's libraries are: found by cuda.pathfinder, the packages of NVIDIA in this environment first."""
_EXTRAS = {"nvrtc": "cuda13", "cublas": "cuda13", "cublasLt": "cuda13", "cufft": "cuda13-fft",
           "cusolver": "cuda13-solver", "cudnn": "cuda13-dnn", "nccl": "cuda13-dist"}
_paths = {}                             # files given in the place of those that would be found


def set_library(name, path):
    """Sets another file for a library before its first use; "": the library is missing; None: the found file again."""
    _paths[name] = path


def extra_of(name):
    """The requirement that pip installs for a library."""
    return f"'ptcore[{_EXTRAS[name]}]'"


def library_path(name):
    """The file of a library such as ``"cublas"``; RuntimeError that names the extra to install where there is none."""
    if _paths.get(name):
        return _paths[name]
    if name in _paths and _paths[name] is not None:
        raise RuntimeError(f"the library {name} of CUDA was not found: pip install {extra_of(name)}")
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib
        found = load_nvidia_dynamic_lib(name)
    except (ImportError, RuntimeError, OSError) as e:
        raise RuntimeError(f"the library {name} of CUDA was not found: pip install {extra_of(name)} "
                           f"({str(e).partition(chr(10))[0]})") from None
    return found.abs_path
