"""Closed word classes: determiners, names, numbers, adverbs, prepositions and times."""

# English singular, English plural (``-`` none), German stem, declension: d like *der*, e like *ein*.
DETERMINERS = """
the the der d
this these dies d
a - ein e
my my mein e
our our unser e
his his sein e
her her ihr e
their their ihr e
"""

NUMBER_WORDS = """
two zwei
three drei
four vier
five fünf
six sechs
seven sieben
eight acht
nine neun
ten zehn
eleven elf
twelve zwölf
twenty zwanzig
thirty dreißig
"""

NAMES = "Anna Peter Maria Paul Lena Max Sophie Tom Emma Jonas Clara Felix Nina Oskar Julia Moritz".split()

CITIES = """
Berlin Berlin
Hamburg Hamburg
Munich München
Vienna Wien
Cologne Köln
Zurich Zürich
Leipzig Leipzig
Rome Rom
Prague Prag
Paris Paris
Lisbon Lissabon
Copenhagen Kopenhagen
"""

# English, German, the tenses they fit: n present, p past, m after a modal verb; aligned word by word.
TIMES = """
yesterday gestern p
last_week letzte_Woche p
last_night gestern_Abend p
last_summer letzten_Sommer p
this_morning heute_Morgen p
two_days_ago vor_zwei_Tagen p
a_week_ago vor_einer_Woche p
every_day jeden_Tag n
every_morning jeden_Morgen n
every_week jede_Woche n
today heute nm
now jetzt nm
sometimes manchmal np
on_Monday am_Montag pm
on_Tuesday am_Dienstag pm
on_Wednesday am_Mittwoch pm
on_Thursday am_Donnerstag pm
on_Friday am_Freitag pm
on_Saturday am_Samstag pm
on_Sunday am_Sonntag pm
in_the_evening am_Abend np
in_the_morning am_Morgen np
in_summer im_Sommer n
in_winter im_Winter n
in_spring im_Frühling n
in_autumn im_Herbst n
tomorrow morgen m
at_7_o'clock um_7_Uhr pm
at_9_o'clock um_9_Uhr pm
at_11_o'clock um_11_Uhr pm
next_week nächste_Woche m
tonight heute_Abend m
"""

# Where the words of a time do not match one by one: pairs of (English word, German word).
TIME_LINKS = {
    "tonight": ((0, 0), (0, 1)),
    "last night": ((0, 0), (1, 1)),
    "two days ago": ((0, 1), (1, 2), (2, 0)),
    "a week ago": ((0, 1), (1, 2), (2, 0)),
    "in the evening": ((0, 0), (1, 0), (2, 1)),
    "in the morning": ((0, 0), (1, 0), (2, 1)),
}

# Adverbs between auxiliary and participle.
MIDDLE_ADVERBS = """
already schon
just gerade
finally endlich
secretly heimlich
probably wahrscheinlich
"""

# Prepositions of place: English where, English where to, German (dative where, accusative where to).
PLACES = """
in into in
on onto auf
under under unter
behind behind hinter
"""

# Lemmas used in the patterns themselves.
FUNCTION_WORDS = """
be have do can must should want will not
he she they we I it who that which than too because when
and with by from to over at many euro o'clock why where cost
"""
