"""Nouns of the demonstration grammar: English singular and plural, German singular, gender, plural, group, kinds.

The group (person, animal, thing, place, food, drink, plant, tale) decides which adjectives fit; the kinds, which verbs.
No noun of the weak declension stands here (no *Löwe*, *Junge*, *Student*), so that the German singular never changes;
no English noun whose plural equals its singular, so that number can always be read off the English word.
"""

NOUNS = """
man men Mann m Männer person worker
woman women Frau f Frauen person worker
child children Kind n Kinder person junior
girl girls Mädchen n Mädchen person junior
teacher teachers Lehrer m Lehrer person worker
doctor doctors Arzt m Ärzte person worker
baker bakers Bäcker m Bäcker person worker
farmer farmers Landwirt m Landwirte person worker
mother mothers Mutter f Mütter person worker
father fathers Vater m Väter person worker
sister sisters Schwester f Schwestern person
brother brothers Bruder m Brüder person
daughter daughters Tochter f Töchter person
son sons Sohn m Söhne person
aunt aunts Tante f Tanten person
uncle uncles Onkel m Onkel person
grandmother grandmothers Großmutter f Großmütter person
grandfather grandfathers Großvater m Großväter person
grandchild grandchildren Enkelkind n Enkelkinder person junior
queen queens Königin f Königinnen person
king kings König m Könige person
singer singers Sänger m Sänger person
painter painters Maler m Maler person worker
driver drivers Fahrer m Fahrer person worker
gardener gardeners Gärtner m Gärtner person worker
friend friends Freund m Freunde person
guest guests Gast m Gäste person
chef chefs Koch m Köche person worker
waitress waitresses Kellnerin f Kellnerinnen person worker
actress actresses Schauspielerin f Schauspielerinnen person
princess princesses Prinzessin f Prinzessinnen person
dentist dentists Zahnarzt m Zahnärzte person worker
captain captains Kapitän m Kapitäne person worker
fisherman fishermen Fischer m Fischer person worker
hunter hunters Jäger m Jäger person
thief thieves Dieb m Diebe person
magician magicians Zauberer m Zauberer person
knight knights Ritter m Ritter person
nurse nurses Krankenschwester f Krankenschwestern person worker
lady ladies Dame f Damen person
tailor tailors Schneider m Schneider person worker
visitor visitors Besucher m Besucher person
witch witches Hexe f Hexen person
family families Familie f Familien person
ghost ghosts Gespenst n Gespenster person

animal animals Tier n Tiere animal jumper
dog dogs Hund m Hunde animal jumper pet hunting
cat cats Katze f Katzen animal jumper pet hunting climber
horse horses Pferd n Pferde animal jumper
mouse mice Maus f Mäuse animal jumper prey climber
bird birds Vogel m Vögel animal prey
cow cows Kuh f Kühe animal
duck ducks Ente f Enten animal prey
goat goats Ziege f Ziegen animal jumper climber
pig pigs Schwein n Schweine animal
camel camels Kamel n Kamele animal
donkey donkeys Esel m Esel animal jumper
chicken chickens Huhn n Hühner animal prey
frog frogs Frosch m Frösche animal jumper prey climber
turtle turtles Schildkröte f Schildkröten animal pet climber
squirrel squirrels Eichhörnchen n Eichhörnchen animal jumper prey climber
fox foxes Fuchs m Füchse animal jumper hunting climber
wolf wolves Wolf m Wölfe animal jumper hunting
hedgehog hedgehogs Igel m Igel animal prey
snake snakes Schlange f Schlangen animal hunting
rabbit rabbits Kaninchen n Kaninchen animal jumper pet prey
pony ponies Pony n Ponys animal jumper
tiger tigers Tiger m Tiger animal jumper hunting climber
crocodile crocodiles Krokodil n Krokodile animal hunting
goose geese Gans f Gänse animal prey
zebra zebras Zebra n Zebras animal jumper
lamb lambs Lamm n Lämmer animal jumper prey
giraffe giraffes Giraffe f Giraffen animal

table tables Tisch m Tische thing furniture hurdle top shelter wooden goods
chair chairs Stuhl m Stühle thing furniture top shelter wooden goods
lamp lamps Lampe f Lampen thing furniture device goods
bed beds Bett n Betten thing furniture top shelter wooden goods
sofa sofas Sofa n Sofas thing furniture top shelter screen goods
cupboard cupboards Schrank m Schränke thing furniture holder lockable screen wooden goods storage
shelf shelves Regal n Regale thing furniture holder wooden goods storage
mirror mirrors Spiegel m Spiegel thing furniture goods
carpet carpets Teppich m Teppiche thing furniture top goods
bench benches Bank f Bänke thing furniture hurdle top shelter wooden goods
clock clocks Uhr f Uhren thing furniture device goods

box boxes Kiste f Kisten thing container holder goods
suitcase suitcases Koffer m Koffer thing container holder lockable goods
bag bags Tasche f Taschen thing container holder goods
basket baskets Korb m Körbe thing container holder goods
drawer drawers Schublade f Schubladen thing holder lockable storage
chest chests Truhe f Truhen thing container holder lockable goods
barrel barrels Fass n Fässer thing container holder hurdle goods
backpack backpacks Rucksack m Rucksäcke thing container holder goods
parcel parcels Paket n Pakete thing container holder goods
sack sacks Sack m Säcke thing container holder goods

cup cups Tasse f Tassen thing crockery goods
glass glasses Glas n Gläser thing holder crockery goods
bowl bowls Schüssel f Schüsseln thing holder crockery goods
plate plates Teller m Teller thing crockery goods
pot pots Topf m Töpfe thing holder crockery goods
bottle bottles Flasche f Flaschen thing crockery goods
vase vases Vase f Vasen thing holder crockery goods

key keys Schlüssel m Schlüssel thing small goods
letter letters Brief m Briefe thing small written goods
book books Buch n Bücher thing small written goods
coin coins Münze f Münzen thing small goods
ring rings Ring m Ringe thing small goods
phone phones Telefon n Telefone thing small device goods
knife knives Messer n Messer thing small goods
spoon spoons Löffel m Löffel thing small goods
fork forks Gabel f Gabeln thing small goods
umbrella umbrellas Regenschirm m Regenschirme thing small goods
newspaper newspapers Zeitung f Zeitungen thing small goods
map maps Landkarte f Landkarten thing small goods
picture pictures Bild n Bilder thing small goods
camera cameras Kamera f Kameras thing small device goods
ball balls Ball m Bälle thing small goods
doll dolls Puppe f Puppen thing small goods
candle candles Kerze f Kerzen thing small goods
pillow pillows Kissen n Kissen thing small goods
blanket blankets Decke f Decken thing small goods
toy toys Spielzeug n Spielzeuge thing small goods
hammer hammers Hammer m Hämmer thing small goods
present presents Geschenk n Geschenke thing small goods
rope ropes Seil n Seile thing small tool goods
hose hoses Schlauch m Schläuche thing tool goods
stick sticks Stock m Stöcke thing tool goods
chain chains Kette f Ketten thing tool goods
cable cables Kabel n Kabel thing tool goods
ladder ladders Leiter f Leitern thing tool goods
pole poles Stange f Stangen thing tool goods
trophy trophies Pokal m Pokale thing small goods
tent tents Zelt n Zelte thing holder goods
hat hats Hut m Hüte thing clothing goods
coat coats Mantel m Mäntel thing clothing goods
dress dresses Kleid n Kleider thing clothing goods
shirt shirts Hemd n Hemden thing clothing goods
shoe shoes Schuh m Schuhe thing clothing goods
jacket jackets Jacke f Jacken thing clothing goods
skirt skirts Rock m Röcke thing clothing goods
cap caps Mütze f Mützen thing clothing goods

drum drums Trommel f Trommeln thing instrument goods
guitar guitars Gitarre f Gitarren thing instrument goods
piano pianos Klavier n Klaviere thing instrument goods
violin violins Geige f Geigen thing instrument goods
trumpet trumpets Trompete f Trompeten thing instrument goods
radio radios Radio n Radios thing device
bell bells Glocke f Glocken thing goods
machine machines Maschine f Maschinen thing device
song songs Lied n Lieder tale heard
story stories Geschichte f Geschichten tale heard told
joke jokes Witz m Witze tale heard told
secret secrets Geheimnis n Geheimnisse tale told

bicycle bicycles Fahrrad n Fahrräder thing vehicle goods
car cars Auto n Autos thing vehicle holder ride goods
boat boats Boot n Boote thing vehicle goods
bus buses Bus m Busse thing vehicle ride goods
train trains Zug m Züge thing vehicle ride goods
ship ships Schiff n Schiffe thing vehicle ride goods
tractor tractors Traktor m Traktoren thing vehicle goods
aeroplane aeroplanes Flugzeug n Flugzeuge thing vehicle goods
tram trams Straßenbahn f Straßenbahnen thing vehicle goods
sledge sledges Schlitten m Schlitten thing vehicle goods
wagon wagons Wagen m Wagen thing vehicle goods
carriage carriages Kutsche f Kutschen thing vehicle goods
ferry ferries Fähre f Fähren thing vehicle goods
locomotive locomotives Lokomotive f Lokomotiven thing vehicle goods
plough ploughs Pflug m Pflüge thing tool goods

house houses Haus n Häuser place building lockable inside screen sight
church churches Kirche f Kirchen place building inside screen sight
tower towers Turm m Türme place building tall screen sight
castle castles Schloss n Schlösser place building inside screen sight
school schools Schule f Schulen place building inside screen sight
museum museums Museum n Museen place building inside sight
hotel hotels Hotel n Hotels place building inside screen sight
barn barns Scheune f Scheunen place building inside lockable screen sight
garden gardens Garten m Gärten place inside
forest forests Wald m Wälder place inside
park parks Park m Parks place inside
village villages Dorf n Dörfer place inside
kitchen kitchens Küche f Küchen place room inside
room rooms Zimmer n Zimmer place room inside
cellar cellars Keller m Keller place room inside
office offices Büro n Büros place room inside
library libraries Bibliothek f Bibliotheken place building inside sight
door doors Tür f Türen thing part lockable
window windows Fenster n Fenster thing part tall
gate gates Tor n Tore thing part lockable hurdle
wall walls Mauer f Mauern thing hurdle painted screen
fence fences Zaun m Zäune thing hurdle painted screen
hedge hedges Hecke f Hecken plant hurdle screen
bush bushes Busch m Büsche plant hurdle planted shelter screen
tree trees Baum m Bäume plant tall planted shelter screen
flower flowers Blume f Blumen plant planted
rose roses Rose f Rosen plant planted
roof roofs Dach n Dächer thing tall painted
nest nests Nest n Nester thing tall
branch branches Ast m Äste plant tall
bridge bridges Brücke f Brücken place road shelter sight
street streets Straße f Straßen place road sight
path paths Weg m Wege place road sight
motorway motorways Autobahn f Autobahnen place road sight
track tracks Gleis n Gleise place road sight
river rivers Fluss m Flüsse place stream sight
brook brooks Bach m Bäche place stream sight
canal canals Kanal m Kanäle place stream sight
swamp swamps Sumpf m Sümpfe place stream sight
ditch ditches Graben m Gräben place stream sight
field fields Feld n Felder place meadow sight
meadow meadows Wiese f Wiesen place meadow sight
valley valleys Tal n Täler place meadow sight

apple apples Apfel m Äpfel food fruit
pear pears Birne f Birnen food fruit
banana bananas Banane f Bananen food fruit
egg eggs Ei n Eier food cooked
tomato tomatoes Tomate f Tomaten food
potato potatoes Kartoffel f Kartoffeln food fruit cooked
carrot carrots Karotte f Karotten food fruit cooked
onion onions Zwiebel f Zwiebeln food fruit
cake cakes Kuchen m Kuchen food baked
roll rolls Brötchen n Brötchen food baked
pizza pizzas Pizza f Pizzas food baked
biscuit biscuits Keks m Kekse food baked

milk - Milch f - drink mass
water - Wasser n - drink mass
juice - Saft m - drink mass
tea - Tee m - drink mass
coffee - Kaffee m - drink mass
lemonade - Limonade f - drink mass
cocoa - Kakao m - drink mass
beer - Bier n - drink mass
"""
