"""Processes that joblib starts under the hook: they have it before they unpickle anything of the program."""
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.core

PROGRAM = """
    import os
    import sys
    import torch
    from torch import nn
    from joblib import Parallel, delayed

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(3, 2)

        def forward(self, x):
            return torch.relu(self.a(x))

    def work(net, x):
        import torch.nn.functional as F
        return F.softmax(net(x), -1), torch.__version__, sys.modules["torch"].__name__, os.getpid()

    def slope(w):
        w = w.detach().clone().requires_grad_()
        (w ** 2).sum().backward()
        return w.grad

    if __name__ == "__main__":
        backend = sys.argv[1]
        net, x = Net(), torch.randn(4, 3)
        for y, version, name, pid in Parallel(2, backend=backend)(delayed(work)(net, x) for _ in range(3)):
            assert torch.allclose(y, torch.softmax(net(x), -1)) and (version, name) == ("2.13.0", "torch")
            assert (pid != os.getpid()) == (backend != "threading")
        # More than joblib maps into memory.
        large = torch.arange(300_000.0)
        assert all(torch.equal(g, 2 * i * large) for i, g in enumerate(
            Parallel(2, backend=backend)(delayed(slope)(large * i) for i in range(3))))
        scale = nn.Parameter(torch.tensor(3.0))
        assert [y.item() for y in Parallel(2, backend=backend)(delayed(lambda t: (t * scale).detach())(torch.tensor(i))
                                                               for i in range(2))] == [0, 3]
"""


@pytest.mark.parametrize("backend", ["loky", "threading"])
@pytest.mark.outer
def test_children_have_the_hook(tmp_path, backend):
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(PROGRAM))
    out = subprocess.run([sys.executable, "-m", "ptcore.compat.torch", str(script), backend], capture_output=True,
                         text=True, cwd=tmp_path, timeout=120)
    assert out.returncode == 0, out.stderr


@pytest.mark.outer
def test_installed_after_joblib(tmp_path):
    """The hook follows what was imported before it, and leaves it as it was."""
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent("""
        import sys
        from joblib import Parallel, delayed
        from joblib.externals.loky.backend import spawn

        def version():
            import torch
            return torch.__version__, "ptcore" in sys.modules

        if __name__ == "__main__":
            before = spawn.get_preparation_data
            from ptcore.compat.torch import install, uninstall
            install()
            install()
            import torch
            assert spawn.get_preparation_data is not before
            assert set(Parallel(2)(delayed(version)() for _ in range(2))) == {("2.13.0", True)}
            uninstall()
            assert spawn.get_preparation_data is before
    """))
    out = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert out.returncode == 0, out.stderr
