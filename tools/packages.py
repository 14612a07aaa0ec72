#!/usr/bin/env python3
"""Packages that were written for PyTorch, installed without it, and the tests that train over them:

    python tools/packages.py FOLDER [pytest options]

Each package is installed into FOLDER by ``pip install --no-deps``, what it needs beside PyTorch too, unless it is
there. Then tests/compat/test_packages.py runs with FOLDER on the path. One that cannot be installed is named, and
its test is skipped.
"""
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = """
    accelerate botorch captum diffusers e3nn efficientnet-pytorch einops einx geomloss gpytorch gymnasium higher kornia
    kornia-rs linear-operator lion-pytorch local-attention monai neuraloperator nflows normflows open-clip-torch peft
    performer-pytorch pyro-ppl pyro-api pytorch-ignite pytorch-lightning lightning-utilities pytorch-optimizer
    pytorch-tabnet segmentation-models-pytorch pretrainedmodels skorch stable-baselines3 tensorly tensorly-torch timm
    torch-geometric torch-optimizer torchani torchdiffeq torchinfo torchmetrics torchsde torchvision transformers
    vit-pytorch x-transformers
"""
# What those need beside, of which most machines have some.
NEEDS = """
    aiohttp antlr4-python3-runtime==4.9.3 anyio autoray axial-positional-embedding certifi charset-normalizer
    cloudpickle farama-notifications filelock frozendict fsspec ftfy h11 hf-xet httpcore httpcore2 httpx httpx2
    huggingface-hub
    hydra-core
    hyper-connections idna iopath jaxtyping loguru lie-learn multipledispatch munch mypy-extensions omegaconf opt-einsum
    opt-einsum-fx packaging pandas portalocker product-key-memory psutil pyparsing pyre-extensions pytorch-ranger pyyaml
    regex requests safetensors shellingham sniffio tabulate tokenizers torch-einops-utils torchdyn torchcde tqdm
    trampoline truststore typer typing-inspect urllib3 wadler-lindig wcwidth x-mlps-pytorch xxhash yacs
"""


def install(folder, requirement):
    """Installs one package; False if that failed."""
    name = requirement.partition("==")[0].replace("-", "_").lower()
    if any(path.name.lower().startswith(f"{name}-") for path in folder.glob("*.dist-info")):
        return True
    done = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder,
                           requirement], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        print(f"{requirement} was not installed: {done.stderr.strip().splitlines()[-1:]}", flush=True)
    return done.returncode == 0


def main(arguments):
    if not arguments or arguments[0].startswith("-"):
        print(__doc__)
        return 2
    folder = Path(arguments[0]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    wanted = [*PACKAGES.split(), *NEEDS.split()]
    for k, requirement in enumerate(wanted):
        print(f"\r{k + 1} of {len(wanted)} {requirement:40}", end="", file=sys.stderr)
        install(folder, requirement)
    print(file=sys.stderr)
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    return subprocess.call([sys.executable, "-P", "-m", "pytest", "tests/compat/test_packages.py", *arguments[1:]],
                           cwd=ROOT, env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
