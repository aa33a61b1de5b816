"""The gate and the command line.

cli         the command `reassure`, a module for each verb
answers     what the verbs answer: a document, and how it is rendered
scenarios   scenario files, told to the model (`worlds`) or to a controller (`live`)
gate        stories and generated steps, carried out against an implementation and judged
adapter     how an implementation is driven, and the bundled one
supervise   the process that a verb runs in, and what becomes of it
script      the text format of stories and scenarios
report      what every document has in common, and how results look
"""
