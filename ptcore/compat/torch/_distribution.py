"""The metadata of the distribution ``torch`` for ``importlib.metadata``."""
from importlib.metadata import Distribution

from ptcore.compat.torch.torch_version import __version__


class Torch(Distribution):
    """PyTorch's name and the version whose names ptcore follows; no files."""

    def read_text(self, filename):
        if filename == "METADATA":
            return (f"Metadata-Version: 2.1\nName: torch\nVersion: {__version__}\n"
                    "Summary: ptcore under the name of PyTorch, by ptcore.compat.torch\n")
        return "torch\n" if filename == "top_level.txt" else None

    def locate_file(self, path):
        from pathlib import Path

        import ptcore
        return Path(ptcore.__file__).parent.parent / path
