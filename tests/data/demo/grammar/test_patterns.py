"""Sentences translated by hand, every pattern: the grammar must generate the English and translate it so."""

from __future__ import annotations

import pytest

from regard.data.demo.grammar import PATTERNS

BY_HAND = """
statement | My old aunt sold three green lamps last week. | Meine alte Tante verkaufte letzte Woche drei grüne Lampen.
statement | The kings drink cold water in the evening. | Die Könige trinken am Abend kaltes Wasser.
statement | She opened a heavy box on Monday. | Sie öffnete am Montag eine schwere Kiste.
statement | The mother calls this famous doctor every day. | Die Mutter ruft jeden Tag diesen berühmten Arzt an.
fronted | In the evening the old king drank hot tea. | Am Abend trank der alte König heißen Tee.
fronted | Two days ago many children collected 24 golden coins. | Vor zwei Tagen sammelten viele Kinder 24 goldene Münzen.
fronted | Last summer Anna and Paul visited my young uncle. | Letzten Sommer besuchten Anna und Paul meinen jungen Onkel.
perfect | The girls have already sold the green chairs. | Die Mädchen haben die grünen Stühle schon verkauft.
perfect | I have finally found a useful umbrella. | Ich habe endlich einen nützlichen Regenschirm gefunden.
perfect | Her brother has secretly eaten the sweet cake. | Ihr Bruder hat den süßen Kuchen heimlich gegessen.
negation | Yesterday the baker didn't buy a lamp. | Gestern kaufte der Bäcker keine Lampe.
negation | In winter the gardener doesn't wash his expensive car. | Im Winter wäscht der Gärtner sein teures Auto nicht.
negation | On Sunday we couldn't invite the polite guests. | Am Sonntag konnten wir die höflichen Gäste nicht einladen.
negation | Last night they didn't lock the old house. | Gestern Abend schlossen sie das alte Haus nicht ab.
negation | On Friday his mother didn't draw an old tree. | Am Freitag zeichnete seine Mutter keinen alten Baum.
question | Has the teacher already found the small key? | Hat der Lehrer den kleinen Schlüssel schon gefunden?
question | Did the thieves steal my new bicycle last week? | Haben die Diebe letzte Woche mein neues Fahrrad gestohlen?
question | Must the child tidy the ugly kitchen tomorrow? | Muss das Kind morgen die hässliche Küche aufräumen?
why | Why did the girl hide the letter last night? | Warum hat das Mädchen gestern Abend den Brief versteckt?
why | Where does the fisherman sell fresh carrots? | Wo verkauft der Fischer frische Karotten?
why | Why do they wash the apples? | Warum waschen sie die Äpfel?
modal | On Monday the children must tidy the ugly kitchen. | Am Montag müssen die Kinder die hässliche Küche aufräumen.
modal | I want to visit the old grandmother tomorrow. | Ich will morgen die alte Großmutter besuchen.
modal | Next week Felix will choose a modern sofa. | Nächste Woche wird Felix ein modernes Sofa auswählen.
giving | The queen gave the clever child a red ball yesterday. | Die Königin gab gestern dem klugen Kind einen roten Ball.
giving | Tom has shown his shy daughters the wild horses. | Tom hat seinen schüchternen Töchtern die wilden Pferde gezeigt.
giving | On Friday she offered the guests fresh rolls. | Am Freitag bot sie den Gästen frische Brötchen an.
giving | Two days ago the king promised this brave woman an old ship. | Vor zwei Tagen versprach der König dieser mutigen Frau ein altes Schiff.
helping | The girl helped the old man in the garden. | Das Mädchen half dem alten Mann im Garten.
helping | Julia has followed the black dogs into the forest. | Julia ist den schwarzen Hunden in den Wald gefolgt.
helping | Last week we thanked our friendly nurse in the museum. | Letzte Woche dankten wir unserer freundlichen Krankenschwester im Museum.
resting | In winter the grey cat sleeps under the table. | Im Winter schläft die graue Katze unter dem Tisch.
resting | A golden ring lay in the box last night. | Ein goldener Ring lag gestern Abend in der Kiste.
resting | Many proud knights sang in his big castle on Sunday. | Viele stolze Ritter sangen am Sonntag in seinem großen Schloss.
moving | The brave mouse has already jumped onto the table. | Die mutige Maus ist schon auf den Tisch gesprungen.
moving | Yesterday the curious rabbits ran into our garden. | Gestern rannten die neugierigen Kaninchen in unseren Garten.
moving | A wild squirrel has finally climbed onto the roof. | Ein wildes Eichhörnchen ist endlich auf das Dach geklettert.
moving | The cats jump into the old chest in the morning. | Die Katzen springen am Morgen in die alte Truhe.
journey | Anna and Paul have travelled from Berlin to Vienna by train. | Anna und Paul sind mit dem Zug von Berlin nach Wien gereist.
journey | Last week Max went from Munich to Rome with his sister. | Letzte Woche fuhr Max mit seiner Schwester von München nach Rom.
journey | Tomorrow we will go from Cologne to Prague by car. | Morgen werden wir mit dem Auto von Köln nach Prag fahren.
shopping | Paul bought twelve red apples and 30 eggs. | Paul kaufte zwölf rote Äpfel und 30 Eier.
shopping | The thief stole two old hats and five golden rings. | Der Dieb stahl zwei alte Hüte und fünf goldene Ringe.
price | The old chair costs 45 euros and the new tables cost 80 euros. | Der alte Stuhl kostet 45 Euro und die neuen Tische kosten 80 Euro.
price | My umbrella costs 13 euros and his black coat costs 99 euros. | Mein Regenschirm kostet 13 Euro und sein schwarzer Mantel kostet 99 Euro.
comparison | The old house is bigger than the new church. | Das alte Haus ist größer als die neue Kirche.
comparison | My brothers are taller than the famous actress. | Meine Brüder sind größer als die berühmte Schauspielerin.
comparison | This horse was faster than the fat cow. | Dieses Pferd war schneller als die dicke Kuh.
report | My sister believes that the baker has just baked a sweet cake. | Meine Schwester glaubt, dass der Bäcker gerade einen süßen Kuchen gebacken hat.
report | The farmer knew that the foxes chased the small chickens. | Der Landwirt wusste, dass die Füchse die kleinen Hühner jagten.
report | They say that Oskar calls his rich uncle. | Sie sagen, dass Oskar seinen reichen Onkel anruft.
report | Lena hopes that we will visit the old museum. | Lena hofft, dass wir das alte Museum besuchen werden.
when | When the teacher opened the window, the dog slept under the table. | Als der Lehrer das Fenster öffnete, schlief der Hund unter dem Tisch.
when | When she called the dentist, he peeled two potatoes. | Als sie den Zahnarzt anrief, schälte er zwei Kartoffeln.
reason | The old man is very happy because his daughter has found the golden ring. | Der alte Mann ist sehr glücklich, weil seine Tochter den goldenen Ring gefunden hat.
reason | These women are very tired because they have unpacked many heavy suitcases. | Diese Frauen sind sehr müde, weil sie viele schwere Koffer ausgepackt haben.
relative-subject | The woman who bought the red lamp is very happy. | Die Frau, die die rote Lampe kaufte, ist sehr glücklich.
relative-subject | The wolves that chased the goose are very big. | Die Wölfe, die die Gans jagten, sind sehr groß.
relative-subject | Our guest who has eaten an onion is very sick. | Unser Gast, der eine Zwiebel gegessen hat, ist sehr krank.
relative-object | The book that the woman wrote is very valuable. | Das Buch, das die Frau schrieb, ist sehr wertvoll.
relative-object | The knight whom the princess loves is very rich. | Der Ritter, den die Prinzessin liebt, ist sehr reich.
relative-object | The coats that my grandfather has sewn are very heavy. | Die Mäntel, die mein Großvater genäht hat, sind sehr schwer.
relative-place | The table onto which the cat jumped was very old. | Der Tisch, auf den die Katze sprang, war sehr alt.
relative-place | The bridges under which the ducks sleep are very beautiful. | Die Brücken, unter denen die Enten schlafen, sind sehr schön.
relative-place | The house behind which the children play is very big. | Das Haus, hinter dem die Kinder spielen, ist sehr groß.
attempt | The girl tries to repair the old bicycle. | Das Mädchen versucht, das alte Fahrrad zu reparieren.
attempt | We promised to tidy the room. | Wir versprachen, das Zimmer aufzuräumen.
attempt | The painter began to draw a wild tiger. | Der Maler begann, einen wilden Tiger zu zeichnen.
pronoun-cross | The animal didn't cross the street because it was too tired. | Das Tier überquerte die Straße nicht, weil es zu müde war.
pronoun-cross | The animal didn't cross the street because it was too wide. | Das Tier überquerte die Straße nicht, weil sie zu breit war.
pronoun-cross | The dog couldn't cross the river because it was too deep. | Der Hund konnte den Fluss nicht überqueren, weil er zu tief war.
pronoun-jump | My pony doesn't jump over the hedge because it is too high. | Mein Pony springt nicht über die Hecke, weil sie zu hoch ist.
pronoun-jump | My pony doesn't jump over the hedge because it is too lazy. | Mein Pony springt nicht über die Hecke, weil es zu faul ist.
pronoun-fit | The box didn't fit into the basket because it was too big. | Die Kiste passte nicht in den Korb, weil sie zu groß war.
pronoun-fit | The box didn't fit into the basket because it was too small. | Die Kiste passte nicht in den Korb, weil er zu klein war.
pronoun-fit | The basket didn't fit into the box because it was too small. | Der Korb passte nicht in die Kiste, weil sie zu klein war.
pronoun-fit | The chest doesn't fit into the car because it is too small. | Die Truhe passt nicht ins Auto, weil es zu klein ist.
pronoun-wake | The dog didn't wake the hedgehog because it was too quiet. | Der Hund weckte den Igel nicht, weil er zu leise war.
pronoun-wake | The mouse didn't wake the pig because it was too quiet. | Die Maus weckte das Schwein nicht, weil sie zu leise war.
pronoun-wake | The mouse didn't wake the pig because it was too sleepy. | Die Maus weckte das Schwein nicht, weil es zu schläfrig war.
pronoun-scare | Her cat doesn't scare the pony because it is too tame. | Ihre Katze erschreckt das Pony nicht, weil sie zu zahm ist.
pronoun-scare | Her cat doesn't scare the pony because it is too brave. | Ihre Katze erschreckt das Pony nicht, weil es zu mutig ist.
pronoun-catch | The fox couldn't catch the goose because it was too slow. | Der Fuchs konnte die Gans nicht fangen, weil er zu langsam war.
pronoun-catch | The fox couldn't catch the goose because it was too fast. | Der Fuchs konnte die Gans nicht fangen, weil sie zu schnell war.
pronoun-carry | Yesterday the donkey didn't carry the goat because it was too weak. | Gestern trug der Esel die Ziege nicht, weil er zu schwach war.
pronoun-carry | Yesterday the donkey didn't carry the goat because it was too heavy. | Gestern trug der Esel die Ziege nicht, weil sie zu schwer war.
pronoun-overtake | The ship couldn't overtake the ferry because it was too slow. | Das Schiff konnte die Fähre nicht überholen, weil es zu langsam war.
pronoun-overtake | The ship couldn't overtake the ferry because it was too fast. | Das Schiff konnte die Fähre nicht überholen, weil sie zu schnell war.
pronoun-overtake | The bus doesn't overtake the locomotive because it is too long. | Der Bus überholt die Lokomotive nicht, weil sie zu lang ist.
"""  # noqa: E501

CASES = [tuple(part.strip() for part in line.split("|")) for line in BY_HAND.strip().splitlines()]


@pytest.mark.parametrize(("pattern", "english", "german"), CASES, ids=[english for _, english, _ in CASES])
def test_translated_by_hand(found, pattern: str, english: str, german: str) -> None:
    assert found(pattern, english).target == german


def test_every_pattern_was_translated_by_hand() -> None:
    assert {pattern for pattern, _, _ in CASES} == set(PATTERNS)
    assert len(CASES) >= 60
