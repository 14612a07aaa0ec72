"""``torch.__config__``: what the build is made of."""
import ptcore

__all__ = ["parallel_info", "show"]


def show():
    """What the build is made of, as text."""
    return str(ptcore.show_config())


def parallel_info():
    """How many threads there are, as text."""
    return f"threads: {ptcore.get_num_threads()}"
