"""Every program through NVRTC, the cache of what it makes, and the warm-up; no GPU is needed for any."""
import importlib.util
import os
import subprocess
import sys

import _budgets
import _proved
import pytest

from ptcore.cuda import _compile, _programs, warmup

if not importlib.util.find_spec("ptcore.cuda._backend"):
    pytest.skip("ptcore was built without the CUDA backend", allow_module_level=True)
if not importlib.util.find_spec("cuda") or not importlib.util.find_spec("cuda.bindings.nvrtc"):
    pytest.skip("NVRTC is not installed", allow_module_level=True)

HALF, FLOAT, INT64 = 9, 11, 8
NIGHT = os.environ.get("PTCORE_TEST_EXAMPLES", "1") != "1"
# What was compiled once gives the same again: one program is compiled in every run, of the others those that changed.
FIXED = ["softmax"]
CHANGED = list(_proved.units()) if NIGHT else _proved.changed()


@pytest.mark.parametrize("architecture", _proved.ARCHITECTURES)
@pytest.mark.parametrize("program", [name for name in _programs.STRUCTURED if name in {*FIXED, *CHANGED}])
def test_structured(program, architecture):
    _proved.compile_all([(program, _proved.representative(program))], architecture, disassembled=True)


@pytest.mark.parametrize("program", _proved.hot() if _proved.HOT in CHANGED else _proved.hot()[:1],
                         ids=lambda unit: f"{unit[0]}-{'-'.join(map(str, unit[1]))}")
def test_hot_kernels(program):
    """Their machine code keeps to its budget."""
    _proved.compile_all([program], 90, disassembled=True, first=False)


def test_an_empty_log_is_written_to_no_shared_bytes():
    """CPython has one object for all bytes of length one, so a C function must not write to such an object."""
    _compile.compiler().compile("__global__ void f() {}", {}, 90)
    assert _compile.compiler().log == ""
    assert [bytes([i])[0] for i in range(256)] == list(range(256))


@pytest.mark.parametrize("architecture", [70, 131])
def test_a_device_that_nvrtc_does_not_know(architecture):
    with pytest.raises(RuntimeError, match=rf"nvrtc 13\.\d+ compiles for sm_75 to sm_\d+, not for sm_{architecture}: "
                                           "pip install --upgrade nvidia-cuda-nvrtc"):
        _proved.compile_all([("fill", (FLOAT,))], architecture)


def test_elementwise():
    """A formula of each eighth, and all of those eighths that have changed, for one dtype."""
    for part in range(_proved.PARTS):
        programs = _proved.elementwise(part)
        assert len(programs) > 20
        whole = f"elementwise {part}" in CHANGED
        _proved.compile_all(programs if whole else programs[:1], 90, disassembled=NIGHT)


def test_what_has_changed_is_compiled(tmp_path, monkeypatch):
    """A line for each program; a text, a header, a bound or the compiler make others of them."""
    names, digests = list(_proved.units()), _proved.digests()
    assert list(digests) == names and len(set(digests.values())) == len(names) == len(_programs.STRUCTURED) + 9
    assert {p for n in names for p, _ in _proved.units()[n]} == (
        set(_programs.STRUCTURED) | {f"elementwise:{op}" for op in _programs.formulas()})
    record = tmp_path / "proved.tsv"
    monkeypatch.setattr(_proved, "RECORD", record)
    assert _proved.changed() == names
    _proved.write()
    assert _proved.changed() == []
    lines = record.read_text().splitlines(keepends=True)
    record.write_text("".join(line for line in lines if not line.startswith("softmax\t")))
    assert _proved.changed() == ["softmax"]
    record.unlink()
    _proved.write()
    headers, op = _programs.headers(), sorted(_programs.formulas())[3]
    for name, whose in (("triangle.cuh", {"triangle"}), ("reduce_prod.cuh", {"reduce_prod"}), ("base.cuh", set(names)),
                        ("many_chunks.cuh", {"many", *(f"step:{step}" for step in _programs.STEPS)})):
        with monkeypatch.context() as m:
            m.setitem(headers, name, headers[name] + " ")
            assert set(_proved.changed()) - {_proved.HOT} == whose - {_proved.HOT}
    with monkeypatch.context() as m:
        m.setitem(_programs.formulas(), op, _programs.formulas()[op] + " ")
        assert _proved.changed()[:1] == ["elementwise 3"]
    with monkeypatch.context() as m:
        m.setitem(headers, "softmax.cuh", headers["softmax.cuh"] + " ")
        assert _proved.HOT in _proved.changed()
    with monkeypatch.context() as m:
        m.setattr(_budgets, "BUDGETS", _budgets.BUDGETS[1:])
        assert _proved.changed() == [_proved.HOT]
    with monkeypatch.context() as m:
        m.setattr(_budgets, "DIVIDING", {})
        assert _proved.changed() == names
    monkeypatch.setattr(_proved.Verbose, "OPTIONS", (*_proved.Verbose.OPTIONS, "-use_fast_math"))
    assert _proved.changed() == names


def test_elementwise_with_conversions():
    _proved.compile_all([(f"elementwise_cast:{op}", (FLOAT,)) for op in ("add", "where", "gelu")], 80)


if NIGHT:                               # half an hour each
    @pytest.mark.timeout(7200)
    @pytest.mark.parametrize("architecture", [75, 80, 90, 100, 120])
    def test_everything(architecture):
        """Every program for every dtype."""
        structured = [(program, types) for program, types in _programs.every() if program in _programs.STRUCTURED]
        _proved.compile_all(structured, architecture, disassembled=True, first=False)
        _proved.compile_all(_programs.every("elementwise"), architecture, first=False)


class Counting:
    """A compiler that counts."""

    identity = "counting 1"

    def __init__(self):
        self.made = 0

    def compile(self, text, headers, architecture):
        self.made += 1
        return f"{architecture}: {text}".encode()


@pytest.fixture
def counting(tmp_path, monkeypatch):
    monkeypatch.setenv("PTCORE_CACHE_DIR", str(tmp_path))
    compiler = Counting()
    _compile.set_compiler(compiler)
    yield compiler
    _compile.set_compiler(None)


def test_cache(counting, tmp_path):
    first = _compile.cubin("softmax", (FLOAT,), 90)
    assert _compile.cubin("softmax", (FLOAT,), 90) == first
    assert counting.made == 1
    _compile.cubin("softmax", (FLOAT,), 80)
    _compile.cubin("softmax", (HALF,), 90)
    assert counting.made == 3
    files = sorted((tmp_path / "kernels").rglob("*.cubin"))
    assert len(files) == 3
    assert all(len(f.stem) == 64 and f.parent.name == f.stem[:2] for f in files)


@pytest.mark.parametrize("damage", [lambda b: b[:-1], lambda b: b"", lambda b: b[:40] + b"x" + b[41:],
                                    lambda b: b[::-1]])
def test_a_corrupted_entry_is_a_miss(counting, tmp_path, damage):
    good = _compile.cubin("softmax", (FLOAT,), 90)
    (file,) = (tmp_path / "kernels").rglob("*.cubin")
    file.write_bytes(damage(file.read_bytes()))
    assert _compile.cubin("softmax", (FLOAT,), 90) == good
    assert counting.made == 2
    assert _compile.cubin("softmax", (FLOAT,), 90) == good
    assert counting.made == 2           # mended


def test_a_folder_that_cannot_be_written_to(counting, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("PTCORE_CACHE_DIR", str(tmp_path / "file"))
    assert _compile.cubin("softmax", (FLOAT,), 90) == _compile.cubin("softmax", (FLOAT,), 90)
    assert counting.made == 2


def test_the_key_knows_everything():
    """The text, headers that are included (and only those), the architecture and the compiler."""
    text, headers = _programs.text_of("softmax", (FLOAT,)), _programs.headers()
    used = _compile.included(text, headers)
    assert "base.cuh" in used
    assert "ptcore/scalar.h" in used
    assert "convolution.cuh" not in used
    key = _compile.key_of(text, used, 90, "v")
    assert key == _compile.key_of(text, dict(reversed(used.items())), 90, "v")
    changed = {**used, "base.cuh": used["base.cuh"] + " "}
    others = [(text + " ", used, 90, "v"), (text, changed, 90, "v"), (text, used, 80, "v"), (text, used, 90, "w")]
    assert len({key, *[_compile.key_of(*o) for o in others]}) == 5


def test_the_compiler_is_known_by_its_build_and_options(monkeypatch, tmp_path):
    """NVRTC's own version has two numbers; builds of 13.0 differ."""
    here = _compile.NVRTC()
    assert "-std=c++17" in here.identity and "-fmad=false" in here.identity and "nvrtc 13." in here.identity
    monkeypatch.setattr(_compile.NVRTC, "OPTIONS", (*_compile.NVRTC.OPTIONS, "-use_fast_math"))
    other = _compile.NVRTC()
    (tmp_path / "libnvrtc.so.13").write_bytes(b"another build")
    monkeypatch.setitem(_compile.libraries._paths, "nvrtc", str(tmp_path / "libnvrtc.so.13"))
    assert len({here.identity, other.identity, _compile.NVRTC().identity}) == 3


def test_an_error_has_the_log():
    with pytest.raises(RuntimeError, match=r"(?s)NVRTC: .*COMPILATION.*nonsense"):
        _compile.NVRTC().compile("nonsense;", {}, 90)


def run(*arguments, **environment):
    return subprocess.run([sys.executable, "-P", "-m", "ptcore.cuda.warmup", *arguments], text=True,
                          capture_output=True, env={**os.environ, **environment})


def test_warmup(tmp_path):
    done = run("--arch", "sm_80", "sm_90", "--programs", "elementwise:relu", "--jobs", "1", "--quiet",
               PTCORE_CACHE_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    wanted = 2 * len(list(_programs.every("elementwise:relu")))
    assert len(list(tmp_path.rglob("*.cubin"))) == wanted > 10


def test_warmup_of_a_list(tmp_path, monkeypatch):
    class Device:
        def programs(self):
            return [("elementwise:relu", (FLOAT,)), ("copy", (FLOAT, HALF))]

    monkeypatch.setattr(warmup, "runtime", Device)
    warmup.save_programs(tmp_path / "step.txt")
    assert (tmp_path / "step.txt").read_text() == "elementwise:relu float\ncopy float half\n"
    done = run("--arch", "sm_90", "--list", str(tmp_path / "step.txt"), "--jobs", "2", PTCORE_CACHE_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.rglob("*.cubin"))) == 2
    (tmp_path / "wrong.txt").write_text("elementwise:relu float\nelementwise:relu flaot\n")
    done = run("--arch", "sm_90", "--list", str(tmp_path / "wrong.txt"), PTCORE_CACHE_DIR=str(tmp_path))
    assert done.returncode == 1
    assert "wrong.txt, line 2: there is no program or dtype 'flaot'" in done.stderr


@pytest.mark.parametrize(("arguments", "message"), [
    (["--arch", "hopper"], "--arch must be such as sm_90"),
    (["--arch", "sm_90", "--programs", "nothing"], "no program has"),
    ([], "no CUDA device here: name architectures")])
def test_warmup_refuses(arguments, message):
    done = run(*arguments)
    assert done.returncode == 1
    assert message in done.stderr
