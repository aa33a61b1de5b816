"""What must hold: clauses, profiles, readings, findings, vocabulary and znode formats.

Everything here is data or parsing of data. The package needs nothing but the standard library,
and nothing in it knows how a clause is carried out or checked.
"""
