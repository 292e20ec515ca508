"""The texts of the demonstration web: the books, goods, news and sights of the town of Aldermere."""

from __future__ import annotations

from typing import NamedTuple


class Item(NamedTuple):
    """One page: its name in the URL, its title, a second line and a text."""

    name: str
    title: str
    note: str
    text: str


TOWN_PAGES = (
    Item("about", "About Aldermere", "population 4,212", "A market town on the Alder, between mill and sea."),
    Item("visit", "Visit us", "by train or on foot", "Two trains an hour; the footpath takes a morning."),
    Item("market", "The market", "Saturdays from seven", "Cheese, rope, old clocks, and the loudest fishmonger."),
    Item("history", "A short history", "since 1281", "A charter, two floods, one fire, and a railway that came late."),
    Item("weather", "Weather", "mostly drizzle", "Mild all year. The fog bell is rung when the bridge disappears."),
)

BOOKS = (
    Item("tidal-clock", "The Tidal Clock", "I. Marrow, 1931", "A clockmaker sets the bell by the sea, and is right."),
    Item("salt-road", "The Salt Road", "E. Vane, 1904", "Four brothers carry salt inland and come home as five."),
    Item("heron-year", "A Year of Herons", "P. Lisle, 1978", "A diary of one pond, one bird, and a patient observer."),
    Item("low-water", "Low Water", "I. Marrow, 1936", "What the drought uncovered, to somebody's regret."),
    Item("ferryman", "The Ferryman's Accounts", "anonymous, 1788", "Crossings, fares and remarks on the passengers."),
    Item("gardens", "Walled Gardens of the Alder", "R. Quill, 1952", "Twelve gardens, their keys, and who holds them."),
    Item("bridge", "How to Build a Bridge Twice", "T. Oakes, 1899", "The engineer's own account, with the first plan."),
    Item("lamp", "The Lamplighter's Daughter", "E. Vane, 1911", "She knows every street by its shadows."),
    Item("orchard", "Orchard Arithmetic", "S. Pell, 1924", "Sums for country schools, with real apples."),
    Item("moths", "Moths of the Alder Valley", "P. Lisle, 1983", "Two hundred kinds, drawn from life at night."),
    Item("winter-post", "The Winter Post", "D. Crane, 1947", "Letters that reached Aldermere by sledge."),
    Item("small-boats", "Small Boats", "D. Crane, 1950", "Stories told while waiting for the tide."),
    Item("bell-ropes", "Bell Ropes", "S. Pell, 1930", "A mystery in eight changes."),
    Item("cheese", "A Cheesemaker's Year", "M. Harrow, 1966", "From the first grass to the last market."),
    Item("maps", "Maps That Were Wrong", "R. Quill, 1961", "Roads that never were, and a lake drawn by mistake."),
    Item("drizzle", "Eleven Words for Drizzle", "M. Harrow, 1971", "The dialect of the lower valley, with sound."),
)

GOODS = (
    Item("rope", "Hemp rope", "4.20 a yard", "Spun on the quay, tarred on request."),
    Item("kettle", "Copper kettle", "38.00", "Two quarts, and it sings in tune."),
    Item("lantern", "Storm lantern", "24.50", "Burns through a gale, and has."),
    Item("cheddar", "Aldermere blue", "6.80 a pound", "Ripened under the bridge."),
    Item("gloves", "Ferryman's gloves", "17.00", "Waxed wool, left hand thicker."),
    Item("clock", "Second-hand clock", "from 12.00", "Most of them go."),
    Item("seeds", "Cottage garden seeds", "1.10", "Sweet peas, marrows and a surprise."),
    Item("apron", "Miller's apron", "14.75", "White, for now."),
    Item("bellows", "Hearth bellows", "19.90", "Beech and calfskin."),
    Item("umbrella", "Town umbrella", "21.00", "Green, large, and usually needed."),
)

NEWS = (
    Item("bridge-reopens", "The bridge reopens", "from the quay", "For the second time this year, and with a band."),
    Item("fog-bell", "Fog bell rung for nine hours", "staff", "The ringer thanks everybody who brought soup."),
    Item("clock-prize", "Market clock wins a prize", "staff", "The judges arrived on time, which settled it."),
    Item("heron-returns", "The heron is back", "P. Lisle", "Seen on the weir at dawn, unimpressed."),
    Item("rope-shortage", "No rope until Thursday", "from the quay", "A wedding and a shipwreck in one week."),
    Item("council-vote", "Council votes on the vote", "our man in the gallery", "It was close."),
    Item("new-train", "A third train?", "letters", "Readers are divided, the railway is not."),
    Item("flood-mark", "The flood mark moves up", "M. Harrow", "By an inch, in pencil."),
)

EXHIBITS = (
    Item("charter", "The charter of 1281", "room 1", "Sheepskin, one seal missing, legible in good light."),
    Item("bell", "The cracked fog bell", "room 1", "It was louder afterwards."),
    Item("sledge", "A post sledge", "room 2", "Used in the winter of 1946."),
    Item("plan", "The first plan of the bridge", "room 2", "Note the missing pier."),
    Item("loom", "A sail loom", "room 3", "Works; ask on Sundays."),
    Item("fish", "The fish that stopped the mill", "room 3", "In spirit, in both senses."),
)

DOCTORS = (
    Item("hours", "Opening hours", "mornings", "Monday to Friday until noon. The stairs are steep; ring below."),
    Item("coughs", "Coughs and fog", "advice", "Stay in when the bell rings, and drink something hot."),
    Item("ferry", "Seasickness on the ferry", "advice", "Look at the church tower, never at the cheese."),
)

POEME = Item(
    "poeme",
    "Le héron d'été",
    "traduit par É. Vâne",
    "Près de l'étang où rêve un héron délaissé, le brouillard s'élève, léger, et l'été s'est passé.",
)
