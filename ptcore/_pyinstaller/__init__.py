"""The hook by which PyInstaller packs ptcore into a program, found through the entry point ``pyinstaller40``."""
from pathlib import Path


def get_hook_dirs():
    """The folders in which PyInstaller looks for hooks."""
    return [str(Path(__file__).parent)]
