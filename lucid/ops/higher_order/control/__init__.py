"""Control flow as operations: branches and loops whose bodies are Graphs.

subgraphs    what their rules share: derivatives, batching and pruning of a body
switch       one of several branches, chosen by a number
scan         a loop of a known number of steps, over stacked values
loops        a loop that runs while a condition holds, and the loops of its reverse mode
"""
