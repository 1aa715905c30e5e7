"""lucid.jit: recorded paths, guards, fast calls, donation, and programs of hot eager code."""
