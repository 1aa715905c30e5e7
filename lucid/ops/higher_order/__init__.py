"""Operations that hold Graphs: control flow, custom rules, checkpoints, calls."""
