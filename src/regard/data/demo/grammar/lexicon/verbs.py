"""Verbs: English base, past, participle; German infinitive (prefix|stem), third person, past, participle; kinds.

The auxiliary of the perfect is h (haben) or s (sein). Each verb has one case frame, and no English verb whose past
equals its base (no *read*, *put*, *cut*) stands here: the tense can always be read off the English words.
"""

# Verbs with an accusative object: … subject kinds, object kinds.
TRANSITIVE = """
buy bought bought kaufen kauft kaufte gekauft h person goods,food,mass
sell sold sold verkaufen verkauft verkaufte verkauft h person goods,food
find found found finden findet fand gefunden h person small,clothing,container,animal
repair repaired repaired reparieren repariert reparierte repariert h person vehicle,device,furniture,part
hide hid hidden verstecken versteckt versteckte versteckt h person small,container,food
carry carried carried tragen trägt trug getragen h person container,crockery
lose lost lost verlieren verliert verlor verloren h person small,clothing
clean cleaned cleaned putzen putzt putzte geputzt h person room,part,device,instrument
wash washed washed waschen wäscht wusch gewaschen h person clothing,fruit,vehicle
open opened opened öffnen öffnet öffnete geöffnet h person part,container
lock locked locked ab|schließen schließt schloss abgeschlossen h person lockable
build built built bauen baut baute gebaut h person building,wooden,painted
forget forgot forgotten vergessen vergisst vergaß vergessen h person small,clothing,container
need needed needed brauchen braucht brauchte gebraucht h person small,clothing,furniture,container,vehicle
see saw seen sehen sieht sah gesehen h person person,animal,building,vehicle
visit visited visited besuchen besucht besuchte besucht h person person,building
invite invited invited ein|laden lädt lud eingeladen h person person
call called called an|rufen ruft rief angerufen h person person
feed fed fed füttern füttert fütterte gefüttert h person animal
stroke stroked stroked streicheln streichelt streichelte gestreichelt h person pet
catch caught caught fangen fängt fing gefangen h person animal
watch watched watched beobachten beobachtet beobachtete beobachtet h person person,animal
photograph photographed photographed fotografieren fotografiert fotografierte fotografiert h person sight,animal
eat ate eaten essen isst aß gegessen h person food
peel peeled peeled schälen schält schälte geschält h person fruit
order ordered ordered bestellen bestellt bestellte bestellt h person baked,mass
drink drank drunk trinken trinkt trank getrunken h person mass
cook cooked cooked kochen kocht kochte gekocht h person cooked
bake baked baked backen backt backte gebacken h person baked
sew sewed sewn nähen näht nähte genäht h person clothing
collect collected collected sammeln sammelt sammelte gesammelt h person small
describe described described beschreiben beschreibt beschrieb beschrieben h person person,animal,sight,small
choose chose chosen aus|wählen wählt wählte ausgewählt h person clothing,furniture,instrument
unpack unpacked unpacked aus|packen packt packte ausgepackt h person container
plant planted planted pflanzen pflanzt pflanzte gepflanzt h worker planted
steal stole stolen stehlen stiehlt stahl gestohlen h person small,vehicle,clothing
push pushed pushed schieben schiebt schob geschoben h person vehicle
lift lifted lifted heben hebt hob gehoben h person container
admire admired admired bewundern bewundert bewunderte bewundert h person person,sight,clothing
deliver delivered delivered liefern liefert lieferte geliefert h worker furniture,container,food
rescue rescued rescued retten rettet rettete gerettet h person person,animal
kiss kissed kissed küssen küsst küsste geküsst h person person
greet greeted greeted begrüßen begrüßt begrüßte begrüßt h person person
hug hugged hugged umarmen umarmt umarmte umarmt h person person
meet met met treffen trifft traf getroffen h person person
love loved loved lieben liebt liebte geliebt h person person,pet
write wrote written schreiben schreibt schrieb geschrieben h person written,heard
translate translated translated übersetzen übersetzt übersetzte übersetzt h person written,heard
draw drew drawn zeichnen zeichnet zeichnete gezeichnet h person sight,animal,plant
paint painted painted streichen streicht strich gestrichen h worker painted,part
borrow borrowed borrowed aus|leihen leiht lieh ausgeliehen h person small,vehicle,instrument
use used used benutzen benutzt benutzte benutzt h person device,vehicle,crockery,tool
break broke broken zerbrechen zerbricht zerbrach zerbrochen h person crockery
hear heard heard hören hört hörte gehört h person animal,instrument,heard
tidy tidied tidied auf|räumen räumt räumte aufgeräumt h person room,storage
chase chased chased jagen jagt jagte gejagt h hunting prey
bite bit bitten beißen beißt biss gebissen h hunting prey,person
"""

# Verbs with a dative object (persons).
DATIVE = """
help helped helped helfen hilft half geholfen h person person,animal
thank thanked thanked danken dankt dankte gedankt h person person
follow followed followed folgen folgt folgte gefolgt s person animal
answer answered answered antworten antwortet antwortete geantwortet h person person
congratulate congratulated congratulated gratulieren gratuliert gratulierte gratuliert h person person
"""

# Verbs with a dative receiver and an accusative object.
GIVING = """
give gave given geben gibt gab gegeben h person small,clothing,food,instrument
show showed shown zeigen zeigt zeigte gezeigt h person small,clothing,building,vehicle,animal
send sent sent schicken schickt schickte geschickt h person small,clothing,container
lend lent lent leihen leiht lieh geliehen h person small,vehicle,clothing,instrument
offer offered offered an|bieten bietet bot angeboten h person food,mass
bring brought brought bringen bringt brachte gebracht h person small,food,container
promise promised promised versprechen verspricht versprach versprochen h person small,vehicle,pet
tell told told erzählen erzählt erzählte erzählt h person told
"""

# Verbs with a place (where: dative).
RESTING = """
sleep slept slept schlafen schläft schlief geschlafen h animal,person -
wait waited waited warten wartet wartete gewartet h animal,person -
sit sat sat sitzen sitzt saß gesessen h animal,person -
stand stood stood stehen steht stand gestanden h animal,person -
play played played spielen spielt spielte gespielt h animal,person -
sing sang sung singen singt sang gesungen h person -
dance danced danced tanzen tanzt tanzte getanzt h person -
lie lay lain liegen liegt lag gelegen h small,clothing -
work worked worked arbeiten arbeitet arbeitete gearbeitet h person -
"""

# Verbs with a goal (where to: accusative), perfect with sein.
MOVING = """
run ran run rennen rennt rannte gerannt s animal,person -
jump jumped jumped springen springt sprang gesprungen s jumper -
climb climbed climbed klettern klettert kletterte geklettert s jumper,person -
"""

# Verbs of the journey pattern: from place to place.
TRAVELLING = """
travel travelled travelled reisen reist reiste gereist s person -
go went gone fahren fährt fuhr gefahren s person -
"""

# Verbs of the patterns with one pronoun and two possible antecedents.
PRONOUN = """
cross crossed crossed überqueren überquert überquerte überquert h animal road,stream,meadow
wake woke woken wecken weckt weckte geweckt h animal animal
scare scared scared erschrecken erschreckt erschreckte erschreckt h animal animal
fit fitted fitted passen passt passte gepasst h holder holder
overtake overtook overtaken überholen überholt überholte überholt h vehicle vehicle
"""

# Verbs of saying, before a clause with "that", and of trying, before an infinitive.
SAYING = """
say said said sagen sagt sagte gesagt h person -
believe believed believed glauben glaubt glaubte geglaubt h person -
hope hoped hoped hoffen hofft hoffte gehofft h person -
think thought thought denken denkt dachte gedacht h person -
know knew known wissen weiß wusste gewusst h person -
"""

TRYING = """
try tried tried versuchen versucht versuchte versucht h person -
promise promised promised versprechen verspricht versprach versprochen h person -
begin began begun beginnen beginnt begann begonnen h person -
"""
