"""MIOpen, which is not used; its setting is kept."""
immediate = False
