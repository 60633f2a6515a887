"""How fast is it? ``python -m mse_fast.bench`` measures Matrix-SE beside its limit and its rivals.

The limit of a network is the time of its bare matrix products, with preallocated outputs and the same number of
threads: no implementation that multiplies dense matrices can be faster. Every contender reports the share of *its*
limit that it reaches, so that a rival loses by design and not by neglect. Contenders take turns, and the figure is
the best of all turns: a disturbance of the machine hits all of them or none.
"""
