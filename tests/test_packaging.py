"""The files of packaging/ say what pyproject.toml and meson.build say, after a release as well; Spack's package runs
against stubs."""
import importlib.util
import re
import sys
import tomllib
import types
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGING = ROOT / "packaging"


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def version():
    return re.search(r"version: '([^']+)'", (ROOT / "meson.build").read_text()).group(1)


def floors(requirements):
    """{name: lowest version} of requirements of Python or of conda."""
    parts = (re.match(r"([\w-]+) *(?:>=([\d.]+))?", r).groups() for r in requirements)
    return {name: lowest and lowest.removesuffix(".0") for name, lowest in parts}


@pytest.fixture
def spack(monkeypatch):
    """The class of Spack's package, and the calls of directives that its body made."""
    calls = []
    api = types.ModuleType("spack.package")
    for name in ("depends_on", "license", "variant", "version"):
        def directive(*arguments, _name=name, **options):
            calls.append((_name, arguments, options))
        setattr(api, name, directive)
    api.make_jobs = 3
    python = types.ModuleType("spack_repo.builtin.build_systems.python")
    python.PythonPackage = type("PythonPackage", (), {})
    for name in ("spack", "spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, "spack.package", api)
    monkeypatch.setitem(sys.modules, python.__name__, python)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    spec = importlib.util.spec_from_file_location("spack_package", PACKAGING / "spack" / "package.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.PyPtcore, calls


def test_spack(spack):
    package, calls = spack
    text = (PACKAGING / "spack" / "package.py").read_text()
    assert len(text.splitlines()) <= 40
    assert package.__mro__[1].__name__ == "PythonPackage"
    assert package.pypi == f"ptcore/ptcore-{version()}.tar.gz"
    assert [a for name, a, _ in calls if name == "version"] == [(version(),)]
    assert [a for name, a, _ in calls if name == "license"] == [(project()["project"]["license"],)]
    variants = {a[0] for name, a, _ in calls if name == "variant"}
    needs = [(a[0], o) for name, a, o in calls if name == "depends_on"]
    assert {o["when"] for _, o in needs if "when" in o} == {f"+{v}" for v in variants} == {"+examples"}
    assert {n for n, o in needs if o.get("when") == "+examples"} == {
        f"py-{n}" for n in project()["project"]["optional-dependencies"]["examples"]}
    kinds = {kind for _, o in needs for kind in ([o["type"]] if isinstance(o["type"], str) else o["type"])}
    assert kinds == {"build", "link", "run"}

    def versions(kind):
        found = (re.fullmatch(r"(?:py-)?([\w-]+)(?:@([\d.]+):?)?", n).groups()
                 for n, o in needs if kind in o["type"] and "when" not in o)
        return {name: lowest and lowest.removesuffix(".0") for name, lowest in found}

    python = project()["project"]["requires-python"].removeprefix(">=")
    assert versions("run") == {"python": python, **floors(project()["project"]["dependencies"])}
    assert versions("build") == {"python": python, "c": None, "cxx": None,
                                 **floors(project()["build-system"]["requires"])}
    settings = package().config_settings(None, None)
    assert settings == {"setup-args": {"-Dcuda": "disabled"}, "compile-args": "-j3"}


def test_easyconfig():
    values = {"SYSTEM": "SYSTEM", "SOURCE_TAR_GZ": "SOURCE_TAR_GZ", "SYS_PYTHON_VERSION": "3"}
    path = PACKAGING / "easybuild" / f"ptcore-{version()}.eb"      # EasyBuild asks for this name
    exec(compile(path.read_text(), path, "exec"), values)
    assert (values["name"], values["version"]) == ("ptcore", version())
    python = f"{values['req_py_majver']}.{values['req_py_minver']}"
    assert python == project()["project"]["requires-python"].removeprefix(">=")
    assert {Path(p).name for p in values["sanity_check_paths"]["files"]} == set(project()["project"]["scripts"])


def under(text, *keys):
    """The items of a list in YAML that stands under keys, without those of nested lists."""
    indent = 0
    for key in keys:
        found = re.search(rf"^{' ' * indent}(?:- )?{key}:\n((?: {{{indent}}}[ -] .*\n|\n)+)", text, re.M)
        text, indent = found.group(1), len(re.match(" *", found.group(1)).group())
    return re.findall(rf"^ {{{indent}}}- (.*)$", text, re.M)


def test_recipe():
    text = (PACKAGING / "conda" / "recipe.yaml").read_text()
    assert text.count(f'version: "{version()}"') == 1 and "schema_version: 1\n" in text
    assert f"license: {project()['project']['license']}\n" in text and (ROOT / "LICENSE").exists()
    assert floors(under(text, "requirements", "run")) == {
        "python": None, **floors(project()["project"]["dependencies"])}
    assert floors(under(text, "requirements", "host")) == {
        "python": None, "pip": None, **floors(project()["build-system"]["requires"])}
    script = text[text.index("  - requirements:"):]
    assert {n.removesuffix("-base") for n in re.findall("^ {8}- (.*)", script, re.M)} == set(
        project()["project"]["optional-dependencies"]["examples"])
    assert {line.split()[0] for line in re.findall("^ {6}- (.*)", script, re.M)} == set(project()["project"]["scripts"])
    pythons = under((PACKAGING / "conda" / "variants.yaml").read_text(), "python")
    lowest = int(project()["project"]["requires-python"].partition(".")[2])
    assert [v.split(".*")[0] for v in pythons] == [f"3.{n}" for n in range(lowest, lowest + 4)]


def test_dockerfile():
    text = (ROOT / "Dockerfile").read_text()
    make = (ROOT / "docker.Makefile").read_text()
    for name, value in re.findall(r"^ARG (\w+)=(\S+)", text, re.M):
        assert re.search(rf"^{name} = {re.escape(value)}$", make, re.M), name
    assert re.findall(r"^USER (\S+)", text, re.M)[-1] not in ("0", "root")
    assert f'licenses="{project()["project"]["license"]}"' in text


def test_the_version_is_set_everywhere(tmp_path):
    spec = importlib.util.spec_from_file_location("release", ROOT / "tools" / "release.py")
    release = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(release)
    before = version()
    files = [ROOT / "meson.build", ROOT / "ptcore" / "__init__.py", *PACKAGING.rglob("*.*")]
    for file in files:
        target = tmp_path / file.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(file.read_text())
    release.set_version(tmp_path, "7.8.9")
    texts = {p.name: p.read_text() for p in tmp_path.rglob("*.*") if p.is_file()}
    found = {name: (before in text, text.count("7.8.9")) for name, text in texts.items()}
    assert found == {"meson.build": (False, 1), "__init__.py": (False, 1), "recipe.yaml": (False, 1),
                     "variants.yaml": (False, 0), "ptcore-7.8.9.eb": (False, 1), "package.py": (False, 2)}
    assert "  version: '7.8.9'," in (tmp_path / "meson.build").read_text()
    assert '\n__version__ = "7.8.9"\n' in (tmp_path / "ptcore" / "__init__.py").read_text()
    (tmp_path / "meson.build").write_text("project('x')")
    with pytest.raises(SystemExit, match=r"meson\.build has the version 0 times"):
        release.set_version(tmp_path, "7.8.9")
