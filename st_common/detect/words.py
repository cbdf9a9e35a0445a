"""What columns are called: by fleets, ships, aircraft, animals and phones, in several languages.

A name is taken apart into words without accents and capitals: `Vehicle ID`, `vehicleId` and `véhicule_id` are alike. Of
a path such as `vehicle.vehicle.id` the last part counts, and the last two together.
"""

import re
import unicodedata
from collections.abc import Sequence

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_]+")
_ID = r"(_?(id|no|nr|num|number|nummer|numero|code|key|ref|identifier|identifiant|uid|name|nimi))?"

_THINGS = (
    "vehicles?|veh|cars?|trucks?|lorry|van|bus|coach|taxi|cab|tram|train|locomotive|ship|vessel|boat|aircraft|plane"
    "|drone|bike|bicycle|scooter|asset|unit|device|tracker|terminal|tag|collar|animal|bird|phone|sensor|logger"
    "|user|person|courier|rider|container|trailer|machine|equipment|player|runner|float|buoy|moving_?object"
    # German
    "|fahrzeuge?|fzg|kfz|wagen|lkw|pkw|zug|bahn|schiff|flugzeug|geraete?|gerate?|einheit|objekt|sender|tier"
    # French
    "|vehicules?|voiture|camion|engin|navire|bateau|avion|appareil|dispositif|balise|traceur|unite"
    # Spanish, Portuguese, Italian
    "|vehiculos?|coche|unidad|movil|dispositivo|equipo|barco|buque|avion|veiculo|viatura|embarcacao|veicolo|mezzo|nave"
    # Dutch, Finnish, Swedish
    "|voertuig(en)?|auto|schip|vliegtuig|apparaat|eenheid|dier|ajoneuvo|alus|laiva|laite|yksikko|kulkuneuvo|fordon|enhet"
)
_PLATES = (
    "(license|licence|number|vehicle)?_?plate(s)?|registration|reg|license|tail|kennzeichen|kfz_?kennzeichen"
    "|immatriculation|plaque|matricula|placa|patente|targa|kenteken|rekisteritunnus|rekisteri|registreringsnummer"
)
OBJECTS: Sequence[re.Pattern[str]] = tuple(
    re.compile(one)
    for one in (
        rf"objects?{_ID}",
        r"mmsi|imei|hex|hexid|icao(_?24)?|icao_?(hex|address)",
        rf"({_THINGS}){_ID}|({_PLATES}){_ID}|id_({_THINGS})",
        rf"(individual|animal)_local_identifier|(fleet|call|car|bus){_ID}|call_?sign|flight{_ID}",
        r"tag_local_identifier|track_?(id|no|num|number|name)|tid|uid|oid|ident|identifier|kennung|identifiant|identificador|tunnus",
        r"id|name|nom|nombre|naam|nimi|label|key|source|imo",
        rf"(driver|fahrer|chauffeur|conductor|crew){_ID}",
        rf"(trip|journey|fahrt|course|viaje|rit){_ID}",
    )
)
"""What objects are called, the surest names first."""
SURE = 4
"""So many of OBJECTS say it by themselves; a column with one of the others must be like one of objects as well."""
TRIPS = len(OBJECTS) - 1
"""The place of those that name trips: of vehicles, where nothing names these."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


X = _words(
    "x lon lng long longitude longitud longitudine easting east rechtswert ostwert laenge lange laengengrad "
    "langengrad lengtegraad lengte pituus pituusaste pituuspiiri"
)
Y = _words(
    "y lat latitude latitud latitudine northing north hochwert nordwert breite breitengrad breedtegraad breedte "
    "leveys leveysaste leveyspiiri"
)
_JOINED = re.compile(
    r"(?P<before>start|end|from|to|pickup|dropoff|gps|geo|pos|wgs84|x|y)?"
    r"(?P<axis>longitude|latitude|longitud|latitud|lon|lng|long|lat|coord(inate)?|x|y)"
    r"(?P<behind>deg|degrees|e7|itude)?"
)
_PLAIN = _words(
    "gps geo geog geographic wgs wgs84 84 4326 epsg deg degree degrees decimal dec point coord coordinate coordinates "
    "koordinate coordenada coordonnee location loc position pos current last e n w s 7 in grad grados"
)
_ENDS = _words(
    "start end from to pickup dropoff pick drop origin destination orig dest begin finish first arrival departure"
)

MEASURES = _words(
    "speed velocity accuracy acc precision bearing heading course direction azimuth cog sog altitude alt ele elevation "
    "height depth satellites sats satellite hdop vdop pdop dop battery temperature temp odometer distance mileage fuel "
    "rpm signal rssi hoehe geschwindigkeit richtung genauigkeit vitesse altitude cap velocidad rumbo altura precision "
    "snelheid hoogte koers nopeus korkeus suunta provider activity"
)
"""Words of columns that are measured, and name no object."""

TIMES: Sequence[re.Pattern[str]] = tuple(
    re.compile(one)
    for one in (
        r"event_?(ts|time|timestamp|date_?time)|last_(event_time|reported)",
        r"(gps|fix|position|pos|location|recorded|record|measurement|observation|device|sample)_?"
        r"(time|timestamp|ts|date_?time|at|date)|recorded_?at|time_position|base_?date_?time|zeitstempel|aikaleima",
        r"t|ts|tst|tsi|time_?stamp(_?(utc|gmt|ms|us|ns|s|local))?|date_?time(_?(utc|gmt|local))?|utc|horodatage"
        r"|(utc|gmt|local|unix|epoch|posix)_?(time|timestamp|date_?time|ms|s)?|tijdstempel|tijdstip|marca_de_tiempo"
        r"|timestamp_?(utc|local)|fecha_?hora|fecha_y_hora|data_?hora|datum_?(uhr)?zeit|date_?heure|pvm_?aika",
        r"time(_?(utc|gmt|local|s|ms))?|instant|when|zeit|uhrzeit|hora|heure|tijd|aika|tid|klockslag|moment|ora|orario",
        r"date|day|datum|fecha|jour|dia|paiva|paivamaara|pvm|tag|data|giorno|(last_)?(seen|update|updated|report)(_?at)?",
        r".*_(time|timestamp|ts|at|date|datetime|zeit|hora)",
    )
)
"""What times are called, the surest names first."""
LATER = re.compile(
    r"(.*_)?(receiv\w*|server|insert\w*|creat\w*|upload\w*|arriv\w*|ingest\w*|process\w*|import\w*|eta|start|end"
    r"|begin|schedul\w*|deploy\w*|expir\w*)(_.*)?"
)
"""Times of something else than the fix."""
DATES = re.compile(
    r"(.*_)?(date|day|datum|fecha|jour|dia|paiva|paivamaara|pvm|tag|data|giorno|dag)(_.*)?"
)
CLOCKS = re.compile(
    r"(.*_)?(time|clock|hour|zeit|uhrzeit|hora|heure|tijd|klo|kello|aika|ora|orario|tid)(_.*)?"
)


def words_of(name: str, *, parts: int = 1) -> str:
    """The words of a name with `_` between them.

    Args:
        name: of a column; a path has its parts with dots between.
        parts: how many of the last parts of a path count.
    """
    shown = ".".join(name.strip(" #").split(".")[-parts:])
    plain = unicodedata.normalize("NFKD", shown.replace("ß", "ss"))
    plain = "".join(one for one in plain if not unicodedata.combining(one))
    return "_".join(word.lower() for word in _WORD.findall(plain))


def rank(name: str, patterns: Sequence[re.Pattern[str]]) -> int | None:
    """The place of the first pattern that a name fits, by its last part or its last two; None: it fits none."""
    called = {words_of(name), words_of(name, parts=2)}
    for place, pattern in enumerate(patterns):
        if any(pattern.fullmatch(one) for one in called):
            return place
    return None


def axis_of(name: str) -> tuple[str, frozenset[str]] | None:
    """Whether a column is called as x or as y are, and by which other words; None: as neither.

    `location-long` is ("x", {}), `pickup_latitude` ("y", {"pickup"}).
    """
    words = words_of(name).split("_")
    joined = _JOINED.fullmatch("".join(words)) if len(words) == 1 else None
    if joined is not None and not {words[0]} & (X | Y):
        words = [one for one in (joined["before"], joined["axis"]) if one]
    on = {"x": set(words) & X, "y": set(words) & Y}
    named = [axis for axis, found in on.items() if found]
    if len(named) != 1:
        return None
    rest = frozenset(words) - on[named[0]] - _PLAIN
    return named[0], rest


def is_end(words: frozenset[str]) -> bool:
    """Whether words say that a place is where a trip begins or ends."""
    return bool(words & _ENDS)
