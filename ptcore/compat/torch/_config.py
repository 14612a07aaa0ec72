"""``torch.__config__``: the configuration of the build."""
import ptcore

__all__ = ["parallel_info", "show"]


def show():
    """The configuration of the build, as text."""
    return str(ptcore.show_config())


def parallel_info():
    """The number of threads, as text."""
    return f"threads: {ptcore.get_num_threads()}"
