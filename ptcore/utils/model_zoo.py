"""``load_url``, the former name of `hub.load_state_dict_from_url`."""
from ptcore.hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]
