"""The standard profile: a gate that can tell, at the price of the published one.

``settings``       every threshold, echoed in the manifest
``design``         two masked rollouts a task with complementary masks, balanced, in random order
``estimate``       differences inside a task, adjusted by the bare outcome; contrasts
``randomisation``  p-values from the design itself
``shrinkage``      what an estimate is worth after selection
``checks``         the effect of any text at all, and what main effects miss
``decision``       adopt, keep, hold, retire
``bootstrap``      how often a decision would be taken again
``sequential``     several looks at one experiment
``confirm``        the new bank against the old one on tasks the selection did not use
``judge``          all of it as one judgement; ``analysis`` and ``documents`` are its halves
``run``            the stage; ``rollouts`` its evaluations

Method, choices and measured numbers: docs/design/gate.md. Specification: gate-analysis.md §16.
"""
