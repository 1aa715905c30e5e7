"""The functions of neural networks, by theme in the files beside this one.

Each name is imported here explicitly and listed in `__all__`.
"""
