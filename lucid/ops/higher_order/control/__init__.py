"""Control flow as primitives: branches and loops whose bodies are Graphs.

subgraphs    shared by their rules: derivatives, batching and pruning of a body
switch       one of several branches, selected by an index
scan         a loop with a known number of steps, over stacked values
while_*      a loop that runs while a condition holds, and the loops of its reverse mode
"""
