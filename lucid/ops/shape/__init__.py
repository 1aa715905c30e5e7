"""Operations that make, reshape, reorder, join or copy tensors."""
