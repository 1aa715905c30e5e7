"""Operations on elements: arithmetic, comparison, exponentials, trigonometry."""
