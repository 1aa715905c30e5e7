"""Other packages, as they are installed, on Lucid's tensors."""
