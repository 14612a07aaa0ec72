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
    "gpytorch": """
        import gpytorch
        class Model(gpytorch.models.ExactGP):
            def __init__(self, x, y, likelihood):
                super().__init__(x, y, likelihood)
                self.mean = gpytorch.means.ConstantMean()
                self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

            def forward(self, x):
                return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))
        x = torch.linspace(0, 1, 20)
        y = torch.sin(6 * x)
        likelihood = gpytorch.likelihoods.GaussianLikelihood()
        model = Model(x, y, likelihood)
        mll = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
        optimizer = torch.optim.Adam(model.parameters(), 0.1)
        for _ in range(20):
            optimizer.zero_grad()
            loss = -mll(model(x), y)
            loss.backward()
            optimizer.step()
        assert abs(loss.item() - 0.343485) < 1e-4           # PyTorch's
    """,
    "pyro": """
        import pyro
        import pyro.distributions as dist
        from pyro.infer import SVI, Trace_ELBO
        torch.manual_seed(0)
        data = torch.ones(10) * 2
        def model():
            mu = pyro.sample("mu", dist.Normal(0.0, 1.0))
            with pyro.plate("data", 10):
                pyro.sample("x", dist.Normal(mu, 1.0), obs=data)
        def guide():
            a = pyro.param("a", torch.tensor(0.0))
            b = pyro.param("b", torch.tensor(1.0), constraint=dist.constraints.positive)
            pyro.sample("mu", dist.Normal(a, b))
        svi = SVI(model, guide, pyro.optim.Adam({"lr": 0.02}), Trace_ELBO(num_particles=4))
        for _ in range(400):
            svi.step()
        assert abs(pyro.param("a").item() - 20 / 11) < 0.15 and abs(pyro.param("b").item() - 11 ** -0.5) < 0.15
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
    lines = [line[8:] for line in CASES[package].splitlines()]
    text = "\n".join(["import torch", *lines])
    out = subprocess.run([sys.executable, "-P", "-m", "ptcore.compat.torch", "-c", text], capture_output=True,
                         text=True, timeout=300)
    assert out.returncode == 0, out.stderr
