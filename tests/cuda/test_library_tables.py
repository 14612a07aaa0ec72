"""The tables of CUDA's libraries against the real ones, their headers, and what is said where they are missing.

Neither a device nor a driver is needed: the libraries load, and make descriptors, without.
"""
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CUDA = ROOT / "ptcore" / "cuda"

if not importlib.util.find_spec("ptcore.cuda._backend"):
    pytest.skip("ptcore was built without the CUDA backend", allow_module_level=True)
pytest.importorskip("cuda.bindings")
SOURCE = pytest.mark.skipif(not (CUDA / "driver" / "library_tables.pyx").exists(), reason="needs the source tree")


def nvidia_file(pattern):
    """A file of NVIDIA's packages in this environment, or None."""
    found = importlib.util.find_spec("nvidia")
    places = list(found.submodule_search_locations) if found else []
    return next((path for place in places for path in sorted(Path(place).glob(pattern))), None)


LIBRARIES = pytest.mark.skipif(nvidia_file("cu13/lib/libcublas.so.13") is None, reason="needs cuBLAS")
SOLVER = pytest.mark.skipif(nvidia_file("cu13/lib/libcusolver.so.12") is None, reason="needs cuSOLVER")
FFT = pytest.mark.skipif(nvidia_file("cu13/lib/libcufft.so.12") is None, reason="needs cuFFT")
DNN = pytest.mark.skipif(nvidia_file("cudnn/lib/libcudnn.so.9") is None, reason="needs cuDNN")
HEADERS = pytest.mark.skipif(nvidia_file("cu13/include/cublasLt.h") is None, reason="needs cuBLAS's headers")

START = """
import ctypes as c, sys
from ptcore.cuda.driver import libraries as _libraries, loading
loading.compiled()
from ptcore.cuda.driver import library_tables
"""


def run(code, **environment):
    """What a process of its own prints."""
    done = subprocess.run([sys.executable, "-P", "-c", START + code], text=True, capture_output=True,
                          env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1]


@LIBRARIES
def test_every_function_is_in_the_library():
    lines = run("""
for name in ("cublas", "cublasLt"):
    library_tables.load(name)
    print(name, len(library_tables.TABLES[name]))
blas, lt = (c.CDLL(_libraries.library_path(name)) for name in ("cublas", "cublasLt"))
major = c.c_int()
assert blas.cublasGetProperty(0, c.byref(major)) == 0
lt.cublasLtGetVersion.restype = c.c_size_t
print(major.value, lt.cublasLtGetVersion() // 10000)
""")
    assert lines[:2] == ["cublas 22", "cublasLt 10"]
    major, version = map(int, lines[2].split())
    assert major == version >= 13


@FFT
@SOURCE
def test_cufft():
    """Functions, the types of their parameters and the numbers; a plan is made where there is a device alone."""
    lines = run("""
library_tables.load("cufft")
fft = c.CDLL(_libraries.library_path("cufft"))
version = c.c_int()
assert fft.cufftGetVersion(c.byref(version)) == 0
print(len(library_tables.TABLES["cufft"]), version.value // 1000)
""")
    assert lines == ["7 12"]
    text = "".join(nvidia_file(f"cu13/include/{name}").read_text() for name in ("cufft.h", "cufftXt.h"))
    for name, value in (("FORWARD", "-1"), ("INVERSE", "1")):
        assert re.search(rf"#define CUFFT_{name}\s+{value}\s", text)
        assert f"FFT_{name} = {value}" in (CUDA / "launch" / "cufft.hpp").read_text()
    enum = re.search(r"typedef enum cufftResult_t \{(.*?)\}", text, re.S)[1]
    statuses = {int(value, 16): name.lower().replace("_", " ") for name, value in
                re.findall(r"CUFFT_(\w+)\s*= (0x\w+)", enum)}
    ours = re.search(r"names\[\] = \{(.*?)\};", (CUDA / "launch" / "fft.cpp").read_text(), re.S)[1]
    told = dict(enumerate(re.findall(r'"(.*?)"', ours)))
    told = {value: name for value, name in told.items() if name}
    full = {"alloc failed": "allocation failed", "exec failed": "execution failed"}
    assert told == {value: full.get(name, name) for value, name in statuses.items() if value in told}
    check_signatures("PT_FFT", text)


@DNN
@SOURCE
def test_cudnn():
    """Functions, the types of their parameters and the numbers. The library itself loads without a device."""
    lines = run("""
library_tables.load("cudnn")
dnn = c.CDLL(_libraries.library_path("cudnn"))
print(len(library_tables.TABLES["cudnn"]), dnn.cudnnGetVersion() // 10000)
""")
    assert lines == ["26 9"]
    text = "".join(nvidia_file(f"cudnn/include/cudnn_{name}.h").read_text() for name in ("graph", "ops", "cnn"))
    plan, stand_in = (path.read_text() for path in (CUDA / "launch" / "cudnn.cpp",
                                                    ROOT / "tests" / "cuda" / "host" / "standin_cudnn.hpp"))
    for name, value in (("DATA_FLOAT", 0), ("DATA_DOUBLE", 1), ("DATA_HALF", 2), ("DATA_BFLOAT16", 9), ("FMA_MATH", 3),
                        ("TENSOR_OP_MATH", 1), ("DEFAULT_MATH", 0), ("CROSS_CORRELATION", 1), ("TENSOR_NCHW", 0),
                        ("DETERMINISTIC", 1)):
        assert re.search(rf"\bCUDNN_{name}\s*= {value},? ", text), name
        ours = name.replace("DATA_", "TYPE_").replace("TENSOR_NCHW", "FORMAT_NCHW")
        assert re.search(rf"\b{ours} = {value}\b", plan), name
    for name in ("BAD_PARAM", "NOT_SUPPORTED"):
        value = re.search(rf"CUDNN_STATUS_{name}\s*= (\d+)", text)[1]
        assert f"{name} = {value}" in stand_in
    fields = re.search(r"struct cudnnConvolutionFwdAlgoPerfStruct \{(.*?)\}", text, re.S)[1]
    words = re.findall(r"^\s*(\w+) \w+(?:\[(\d)\])?;", fields, re.M)
    assert words == [("cudnnConvolutionFwdAlgo_t", ""), ("cudnnStatus_t", ""), ("float", ""), ("size_t", ""),
                     ("cudnnDeterminism_t", ""), ("cudnnMathType_t", ""), ("int", "3")]
    check_signatures("PT_DNN", text)


@DNN
@SOURCE
def test_numbers_of_cudnn_graphs():
    text, ours = (path.read_text() for path in (nvidia_file("cudnn/include/cudnn_graph.h"),
                                                CUDA / "launch" / "cudnn_attention.cpp"))
    theirs = dict(re.findall(r"^ *CUDNN_(\w+)\s*(?:CUDNN_DEPRECATED_ENUM)?\s*= (\d+),", text, re.M))
    checked = 0
    for what, form in (("DescriptorType", "BACKEND_{}_DESCRIPTOR"), ("AttributeType", "TYPE_{}"),
                       ("AttributeName", "ATTR_{}")):
        body = re.search(rf"// cudnnBackend{what}_t\nenum \{{(.*?)\}};", ours, re.S)[1]
        for name, value in re.findall(r"(\w+) = (\d+)", body):
            assert theirs[form.format(name)] == value, name
            checked += 1
    for name in ("HEUR_MODE_FALLBACK", "HEUR_MODE_A", "POINTWISE_CMP_GE", "NUMERICAL_NOTE_NONDETERMINISTIC"):
        assert f"{name} = {theirs[name]}" in ours
    for name in ("FLOAT", "HALF", "BFLOAT16"):
        assert theirs[f"DATA_{name}"] == re.search(rf"TYPE_{name} = (\d+)", ours)[1]
    assert checked == 66


# What cuDNN knows of a device: of an H100, but for its capability.
DEVICE = {
    "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64], "regsPerBlock": 65536,
    "multiProcessorCount": 132, "warpSize": 32, "maxSharedMemoryPerBlock": 49152,
    "maxSharedMemoryPerBlockOptin": 232448, "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536,
    "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "pciDeviceId": 0, "isTccDriver": 0,
    "supportCoopLaunch": 1, "totalGlobalMem": 85899345920, "smClockRateKHz": 1980000, "memClockRateKHz": 2619000,
    "memoryBusWidth": 5120, "l2CacheSize": 52428800, "cudaDeviceId": 0, "driverVer": 13000, "deviceName": "",
}


@DNN
@pytest.mark.parametrize("capability", [900, 1000])
def test_cudnn_plans_attention(tmp_path, monkeypatch, capability):
    """cuDNN takes the graphs and compiles kernels for them, for a device that it is told of; none is there."""
    monkeypatch.syspath_prepend(ROOT / "tests" / "cuda" / "host")
    import host_compiler
    host_compiler.build_no_driver(tmp_path)
    lines = run(f"""
import itertools
device = {json.dumps(json.dumps({**DEVICE, "deviceVer": capability}))}
for sizes in (2, 8, 8, 512, 512, 64, 64), (2, 8, 2, 130, 77, 128, 128), (1, 3, 3, 33, 65, 24, 40):
    for backward, causal in itertools.product((False, True), repeat=2):
        print(library_tables.room_for_attention(device, sizes, backward, causal, backward) >= 0)
print(library_tables.room_for_attention(device, (1, 2, 2, 16, 16, 12, 16)))
""", LD_LIBRARY_PATH=f"{tmp_path}:{os.environ.get('LD_LIBRARY_PATH', '')}")
    assert lines == ["True"] * 12 + ["-1"]


def shape_of(parameter):
    """A parameter's type as far as a call depends on it: its scalar, and how many pointers lead there."""
    words = re.sub(r"\bconst\b|/\*.*?\*/", "", parameter)
    words = re.sub(r"(\w+)\[\]", r"*\1", words)
    pointers = words.count("*")
    base = re.sub(r"\s+", " ", words.replace("*", " ").strip()).rpartition(" ")[0]
    if not base:                        # nothing, or void
        return "none"
    if re.fullmatch(r"cu\w+(Handle|Params|Stream|Descriptor)_t|gesvdjInfo_t", base) and base != "cufftHandle":
        return "data", pointers + 1
    structs = ("void", "float", "double", "cuComplex", "cuDoubleComplex", "DnnAlgorithm")
    if base in structs or base.endswith("AlgoPerf_t"):
        return "data", pointers
    scalars = {"long long int": "long long", "size_t": "size_t", "int64_t": "int64_t", "signed char": "signed char",
               "long long": "long long", "uint64_t": "uint64_t"}
    enum = base == "int" or base.startswith(("cuda", "cublas", "cusolver", "cufft", "cudnn"))
    return scalars[base] if not enum else "int", pointers


def check_signatures(entry, text):
    """The functions of driver/functions.h as a header declares them."""
    listed = (CUDA / "driver" / "functions.h").read_text()
    one = re.compile(rf"^{entry}4?\(\w+, ([^()]*),\s+\((.*?)\)\)$", re.M | re.S)
    found = [(name, field) for names, field in one.findall(listed)
             for name in re.split(r",\s+", names.removeprefix("int, ").removeprefix("size_t, "))]
    assert len(found) == sum(len(re.findall(rf"^{entry}{n}\(", listed, re.M)) * (n or 1) for n in ("", 4)) > 0
    for name, field in found:
        declared = re.search(rf"\b\w+API\s+{name}\s*\((.*?)\);", text, re.S)[1]
        declared = re.sub(r"/\*.*?\*/", "", declared, flags=re.S)
        theirs, mine = ([shape_of(p) for p in parameters.split(",")] for parameters in (declared, field))
        assert theirs == mine, name


@HEADERS
@SOURCE
def test_functions_of_cublas_are_the_headers():
    text = nvidia_file("cu13/include/cublas_api.h").read_text()
    check_signatures("PT_BLAS", text)


@SOLVER
@HEADERS
@SOURCE
def test_cusolver():
    """Functions, the types of their parameters and the numbers; a handle is made where there is a device alone."""
    lines = run("""
library_tables.load("cusolver")
solver = c.CDLL(_libraries.library_path("cusolver"))
version = c.c_int()
assert solver.cusolverGetVersion(c.byref(version)) == 0
print(len(library_tables.TABLES["cusolver"]), version.value // 1000)
""")
    assert lines == ["49 12"]
    common, text, blas = (nvidia_file(f"cu13/include/{name}").read_text()
                          for name in ("cusolver_common.h", "cusolverDn.h", "cublas_api.h"))
    check_signatures("PT_SOLVER", common + text)
    headers = {name: int(value) for name, value in re.findall(r"\b(CU\w+)\s*=\s*(\d+)\b", common + blas)}
    ours = {name: int(value) for name, value in re.findall(r"(\w+) = (\d+)", re.search(
        r"enum \{ (UPLO_.*?) \};", (CUDA / "launch" / "solver.hpp").read_text())[1])}
    assert ours == {"UPLO_LOWER": headers["CUBLAS_FILL_MODE_LOWER"], "UPLO_UPPER": headers["CUBLAS_FILL_MODE_UPPER"],
                    "OP_AS_IT_IS": headers["CUBLAS_OP_N"], "OP_TURNED": headers["CUBLAS_OP_T"],
                    "SIDE_RIGHT": headers["CUBLAS_SIDE_RIGHT"]}
    # What is passed as a truth: a unit diagonal, vectors.
    assert [headers[name] for name in ("CUBLAS_DIAG_NON_UNIT", "CUBLAS_DIAG_UNIT", "CUSOLVER_EIG_MODE_NOVECTOR",
                                       "CUSOLVER_EIG_MODE_VECTOR")] == [0, 1, 0, 1]
    told = re.search(r"names\[\] = \{(.*?)\};", (CUDA / "launch" / "solver.cpp").read_text(), re.S)[1]
    full = {"alloc failed": "allocation failed", "arch mismatch": "architecture mismatch"}
    for value, name in enumerate(re.findall(r'"(.*?)"', told)):
        theirs = next(n for n, v in headers.items() if v == value and n.startswith("CUSOLVER_STATUS_"))
        theirs = theirs.removeprefix("CUSOLVER_STATUS_").lower().replace("_", " ")
        assert full.get(theirs, theirs) == name


@LIBRARIES
@SOURCE
def test_descriptors_take_our_attributes():
    """As ``make`` in cublas.cpp makes them, without the heuristic, which needs a device."""
    values = ours()
    lines = run(f"""
lt = c.CDLL(_libraries.library_path("cublasLt"))
v = {values}
def new(function, *args):
    made = c.c_void_p()
    assert getattr(lt, function)(c.byref(made), *args) == 0, function
    return made
def set(function, made, attribute, value):
    status = getattr(lt, function)(made, v[attribute], c.byref(value), c.c_size_t(c.sizeof(value)))
    assert status == 0, (attribute, status)
    print(attribute)
for compute, scale, types in (("COMPUTE_32F", "R_32F", ("R_32F", "R_16F", "R_16BF")),
                              ("COMPUTE_TF32", "R_32F", ("R_32F",)), ("COMPUTE_64F", "R_64F", ("R_64F",))):
    operation = new("cublasLtMatmulDescCreate", v[compute], v[scale])
    for attribute, value in (("OPERATION_TRANSA", c.c_int(1)), ("OPERATION_TRANSB", c.c_int(0)),
                             ("OPERATION_EPILOGUE", c.c_int(v["EPILOGUE_BIAS"])),
                             ("OPERATION_BIAS_POINTER", c.c_void_p(512))):
        set("cublasLtMatmulDescSetAttribute", operation, attribute, value)
    for kind in types:
        layout = new("cublasLtMatrixLayoutCreate", v[kind], c.c_uint64(8), c.c_uint64(4), c.c_int64(8))
        assert lt.cublasLtMatrixLayoutDestroy(layout) == 0
    assert lt.cublasLtMatmulDescDestroy(operation) == 0
preference = new("cublasLtMatmulPreferenceCreate")
prefer = "cublasLtMatmulPreferenceSetAttribute"
set(prefer, preference, "PREFERENCE_WORKSPACE", c.c_uint64(1 << 20))
set(prefer, preference, "PREFERENCE_REDUCTIONS", c.c_uint32(v["REDUCTION_COMPUTE_TYPE"]))
for i in range(4):
    v["ALIGNMENT"] = v["PREFERENCE_ALIGNMENT_A"] + i
    set(prefer, preference, "ALIGNMENT", c.c_uint32(16))
assert lt.cublasLtMatmulPreferenceDestroy(preference) == 0
""")
    assert len(lines) == 3 * 4 + 2 + 4


def ours():
    """The numbers that the backend gives to the libraries, by our names."""
    text = "".join((CUDA / "launch" / name).read_text() for name in ("cublas.hpp", "cublas.cpp"))
    enums = re.findall(r"^enum \{(.*?)\};", text, re.M | re.S)
    return {name: int(value) for body in enums for name, value in re.findall(r"(\w+) = (-?\d+)", body)}


# Our name: the header's.
NAMES = {
    "R_32F": "CUDA_R_32F", "R_64F": "CUDA_R_64F", "R_16F": "CUDA_R_16F", "C_32F": "CUDA_C_32F", "C_64F": "CUDA_C_64F",
    "R_16BF": "CUDA_R_16BF", "COMPUTE_32F": "CUBLAS_COMPUTE_32F", "COMPUTE_64F": "CUBLAS_COMPUTE_64F",
    "COMPUTE_TF32": "CUBLAS_COMPUTE_32F_FAST_TF32",
    "NO_REDUCED_PRECISION": "CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION",
    "ARCH_MISMATCH": "CUBLAS_STATUS_ARCH_MISMATCH", "INVALID_VALUE": "CUBLAS_STATUS_INVALID_VALUE",
    "NOT_SUPPORTED": "CUBLAS_STATUS_NOT_SUPPORTED", "EPILOGUE_BIAS": "CUBLASLT_EPILOGUE_BIAS",
    "REDUCTION_COMPUTE_TYPE": "CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE",
    "OPERATION_TRANSA": "CUBLASLT_MATMUL_DESC_TRANSA", "OPERATION_TRANSB": "CUBLASLT_MATMUL_DESC_TRANSB",
    "OPERATION_EPILOGUE": "CUBLASLT_MATMUL_DESC_EPILOGUE",
    "OPERATION_BIAS_POINTER": "CUBLASLT_MATMUL_DESC_BIAS_POINTER",
    "PREFERENCE_WORKSPACE": "CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES",
    "PREFERENCE_REDUCTIONS": "CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK",
    "PREFERENCE_ALIGNMENT_A": "CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES",
}


@HEADERS
@SOURCE
def test_numbers_are_the_headers():
    text = "".join(nvidia_file(f"cu13/include/{name}").read_text()
                   for name in ("library_types.h", "cublas_api.h", "cublasLt.h"))
    headers = {name: int(value, 0) for name, value in re.findall(r"^\s*(CU\w+)\s*=\s*(\d\w*)\s*[,\n/]", text, re.M)}
    values = ours()
    assert {name for name in values if not name.startswith(("LIBRARY_", "BLAS_DECLINES"))} == set(NAMES)
    assert {name: values[name] for name in NAMES} == {name: headers[there] for name, there in NAMES.items()}
    # The four alignments follow each other; an algorithm is eight words, and so is what a result begins with.
    assert [headers[f"CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_{x}_BYTES"] - headers[NAMES["PREFERENCE_ALIGNMENT_A"]]
            for x in "ABCD"] == [0, 1, 2, 3]
    assert re.search(r"typedef struct \{\s*uint64_t data\[8\];\s*\} cublasLtMatmulAlgo_t;", text)
    result = re.search(r"typedef struct \{([^}]*)\} cublasLtMatmulHeuristicResult_t;", text)[1]
    fields = re.findall(r"^\s*(\w+) (\w+)(?:\[(\d+)\])?;", result, re.M)
    assert fields == [("cublasLtMatmulAlgo_t", "algo", ""), ("size_t", "workspaceSize", ""),
                      ("cublasStatus_t", "state", ""), ("float", "wavesCount", ""), ("int", "reserved", "4")]


REFUSED = """
try:
    library_tables.load({name!r})
except RuntimeError as e:
    print(e)
"""


EXTRAS = {"cublas": "cuda13", "cublasLt": "cuda13", "cufft": "cuda13-fft", "cusolver": "cuda13-solver",
          "cudnn": "cuda13-dnn"}


@pytest.mark.parametrize("name", EXTRAS)
def test_an_older_library(name):
    first = {"cublas": "cublasCreate_v2", "cublasLt": "cublasLtMatmulDescCreate", "cufft": "cufftCreate",
             "cusolver": "cusolverDnCreate", "cudnn": "cudnnCreate"}[name]
    line, = run(f"_libraries.set_library({name!r}, 'libm.so.6')" + REFUSED.format(name=name))
    assert line == (f"{name}: libm.so.6 has no {first}; an older version? pip install --upgrade "
                    f"'ptcore[{EXTRAS[name]}]'")


@pytest.mark.parametrize("name", EXTRAS)
def test_no_library(name):
    line, = run(f"_libraries.set_library({name!r}, '/nowhere/lib.so')" + REFUSED.format(name=name))
    assert line == f"{name}: /nowhere/lib.so cannot be loaded: pip install 'ptcore[{EXTRAS[name]}]'"
    line, = run("sys.modules['cuda.pathfinder'] = None" + REFUSED.format(name=name))
    assert line.startswith(f"the library {name} of CUDA was not found: pip install 'ptcore[{EXTRAS[name]}]'")
    line, = run("import cuda.pathfinder\n"
                "def absent(name): raise cuda.pathfinder.DynamicLibNotFoundError('no such file')\n"
                "cuda.pathfinder.load_nvidia_dynamic_lib = absent" + REFUSED.format(name=name))
    assert line.startswith(f"the library {name} of CUDA was not found: pip install 'ptcore[{EXTRAS[name]}]' "
                           "(no such file")


@SOURCE
def test_functions_of_the_driver_are_in_the_floor():
    """Cython binds each cimported function at import: one that the installed bindings lack would break them all."""
    from cuda.bindings import cydriver
    used = {name for path in CUDA.rglob("*.pyx") for name in re.findall(r"\bcu\.(cu[A-Z]\w+)\(", path.read_text())}
    assert len(used) > 35
    assert used <= set(cydriver.__pyx_capi__)
