"""Random bits: the Threefry cipher as a kernel."""
