"""Operations that create, reshape, reorder, join or copy tensors."""
