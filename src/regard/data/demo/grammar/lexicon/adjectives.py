"""Adjectives: English, German predicate form, German stem before endings (``=`` the same), groups they describe.

Groups: p person, a animal, t thing, l place, f food, d drink, v plant, s tale; ``-`` for predicates.
"""

ADJECTIVES = """
old alt = patlvs
young jung = pa
new neu = tls
big groß = atlvf
small klein = atlvf
tall groß = p
beautiful schön = tlvs
clever klug = p
friendly freundlich = p
rich reich = p
poor arm = p
famous berühmt = pls
happy glücklich = p
sad traurig = ps
strong stark = pa
brave mutig = pa
curious neugierig = pa
hungry hungrig = pa
tired müde müd pa
polite höflich = p
funny lustig = ps
shy schüchtern = p
proud stolz = p
elegant elegant = p
wild wild = a
brown braun = at
black schwarz = at
white weiß = at
grey grau = at
red rot = tf
green grün = tf
blue blau = t
yellow gelb = tf
fat dick = a
pretty hübsch = tlv
heavy schwer = t
cheap billig = t
expensive teuer teur t
broken kaputt = t
dirty schmutzig = t
strange seltsam = tlvs
colourful bunt = t
modern modern = tl
golden golden = t
ugly hässlich = tl
valuable wertvoll = t
useful nützlich = t
quiet leise = -
peaceful friedlich = l
fresh frisch = fd
sweet süß = fd
ripe reif = f
delicious lecker = fd
cold kalt = fd
hot heiß = d
warm warm = d
exhausted erschöpft = -
sleepy schläfrig = -
weak schwach = -
sick krank = -
lazy faul = a
nervous nervös = -
frightened ängstlich = -
stubborn stur = -
calm ruhig = -
tame zahm = -
wide breit = -
slippery rutschig = -
icy vereist = -
busy belebt = -
muddy schlammig = -
deep tief = -
high hoch hoh -
bulky sperrig = -
long lang = -
thick dick = -
narrow schmal = -
tight eng = -
short kurz = -
slow langsam = -
fast schnell = -
"""

# English comparative, German comparative, the kind of noun it compares, the adjective it belongs to.
COMPARATIVES = """
bigger größer thing,animal,place big
smaller kleiner thing,animal,place small
older älter person,thing,place old
younger jünger person young
taller größer person tall
stronger stärker person,animal strong
richer reicher person rich
cleverer klüger person clever
heavier schwerer thing heavy
cheaper billiger thing cheap
newer neuer thing,place new
slower langsamer animal slow
faster schneller animal fast
happier glücklicher person happy
"""
