"""``load_url``, the former name of `hub.load_state_dict_from_url`."""
from ptcore.hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]


def __getattr__(name):
    if name == "tqdm":                  # programs import tqdm from here
        from tqdm import tqdm
        return tqdm
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
