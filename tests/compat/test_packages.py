"""Packages from elsewhere that were written for PyTorch run under the hook, where they are installed."""
import importlib.util
import subprocess
import sys

import pytest

CASES = {
    "einops": """
        from einops import rearrange, reduce
        from einops.layers.torch import Rearrange
        x = torch.randn(2, 3, 4, requires_grad=True)
        rearrange(x, "a b c -> a (b c)").sum().backward()
        assert reduce(x, "a b c -> a", "mean").shape == (2,) and Rearrange("a b c -> a (b c)")(x).shape == (2, 12)
    """,
    "lion_pytorch": """
        from lion_pytorch import Lion
        m = torch.nn.Linear(2, 2)
        o = Lion(m.parameters(), lr=1e-2)
        before = m.weight.detach().clone()
        m(torch.ones(1, 2)).sum().backward()
        o.step()
        assert torch.allclose(before - m.weight, torch.tensor(1e-2))
    """,
    "torchdiffeq": """
        from torchdiffeq import odeint
        t = torch.linspace(0, 1, 3, dtype=torch.float64)
        y = odeint(lambda t, y: -y, torch.tensor([1.0], dtype=torch.float64), t)
        assert abs(y[-1].item() - 0.36787944117144233) < 1e-5
    """,
    "x_transformers": """
        import torch.amp
        from x_transformers import Decoder, TransformerWrapper
        m = TransformerWrapper(num_tokens=20, max_seq_len=16, attn_layers=Decoder(dim=16, depth=1, heads=2))
        out = m(torch.randint(0, 20, (1, 8)))
        out.sum().backward()
        assert out.shape == (1, 8, 20)
    """,
}


@pytest.mark.parametrize("package", CASES)
def test_package(package):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"needs {package}")
    if "torch.amp" in CASES[package] and importlib.util.find_spec("ptcore.amp") is None:
        pytest.skip("needs ptcore.amp")
    lines = [line[8:] for line in CASES[package].splitlines()]
    text = "\n".join(["import torch", *lines])
    out = subprocess.run([sys.executable, "-m", "ptcore.compat.torch", "-c", text], capture_output=True, text=True,
                         timeout=300)
    assert out.returncode == 0, out.stderr
