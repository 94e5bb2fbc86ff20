"""The contents of a report, without its form. Pure.

The same sheet becomes a page, a PDF, a workbook and lines of CSV.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, tzinfo
from decimal import ROUND_FLOOR, ROUND_HALF_UP, Decimal
from typing import Any, Literal, TypeAlias

from attrs import field, frozen

from monrest.reports.picture import BAD, STATES, Picture

# The words of reports in their languages.
#
# A word that a language does not have is in English.

Say: TypeAlias = Callable[[str], str]
"""A word or sentence in the language of a report."""

_ORDER = ("de", "dk", "es", "fr", "it")
_WORDS: Mapping[str, tuple[str, str, str, str, str]] = {
    "Service level": ("Verfügbarkeit", "Tilgængelighed", "Nivel de servicio",
                      "Niveau de service", "Livello di servizio"),
    "Outages": ("Ausfälle", "Afbrydelser", "Interrupciones", "Interruptions", "Interruzioni"),
    "Event log": ("Ereignisse", "Hændelser", "Eventos", "Événements", "Eventi"),
    "Problems": ("Probleme", "Problemer", "Problemas", "Problèmes", "Problemi"),
    "Report": ("Bericht", "Rapport", "Informe", "Rapport", "Rapporto"),
    "Description": ("Beschreibung", "Beskrivelse", "Descripción", "Description", "Descrizione"),
    "Address": ("Adresse", "Adresse", "Dirección", "Adresse", "Indirizzo"),
    "Period": ("Zeitraum", "Periode", "Periodo", "Période", "Periodo"),
    "Time period": ("Zeitfenster", "Tidsrum", "Horario", "Plage horaire", "Fascia oraria"),
    "Created": ("Erstellt", "Oprettet", "Creado", "Créé", "Creato"),
    "Objects": ("Objekte", "Objekter", "Objetos", "Objets", "Oggetti"),
    "Sites": ("Standorte", "Steder", "Sitios", "Sites", "Siti"),
    "Target": ("Ziel", "Mål", "Objetivo", "Objectif", "Obiettivo"),
    "Average": ("Durchschnitt", "Gennemsnit", "Media", "Moyenne", "Media"),
    "Below target": ("Unter dem Ziel", "Under målet", "Por debajo del objetivo",
                     "Sous l'objectif", "Sotto l'obiettivo"),
    "Availability": ("Verfügbarkeit", "Tilgængelighed", "Disponibilidad", "Disponibilité",
                     "Disponibilità"),
    "Availability over time": ("Verfügbarkeit im Verlauf", "Tilgængelighed over tid",
                               "Disponibilidad en el tiempo", "Disponibilité dans le temps",
                               "Disponibilità nel tempo"),
    "Overview": ("Übersicht", "Oversigt", "Resumen", "Vue d'ensemble", "Panoramica"),
    "Details": ("Einzelheiten", "Detaljer", "Detalles", "Détails", "Dettagli"),
    "Lowest availability": ("Niedrigste Verfügbarkeit", "Laveste tilgængelighed",
                            "Disponibilidad más baja", "Disponibilité la plus basse",
                            "Disponibilità più bassa"),
    "Host": ("Host", "Host", "Host", "Hôte", "Host"),
    "Service": ("Dienst", "Tjeneste", "Servicio", "Service", "Servizio"),
    "Hosts": ("Hosts", "Hosts", "Hosts", "Hôtes", "Host"),
    "Services": ("Dienste", "Tjenester", "Servicios", "Services", "Servizi"),
    "Available": ("Verfügbar", "Tilgængelig", "Disponible", "Disponible", "Disponibile"),
    "Unavailable": ("Nicht verfügbar", "Utilgængelig", "No disponible", "Indisponible",
                    "Non disponibile"),
    "Unknown time": ("Unbekannt", "Ukendt", "Desconocido", "Inconnu", "Sconosciuto"),
    "In downtime": ("In Wartung", "I nedetid", "En mantenimiento", "En maintenance",
                    "In manutenzione"),
    "From": ("Von", "Fra", "Desde", "De", "Da"),
    "Until": ("Bis", "Til", "Hasta", "À", "A"),
    "Duration": ("Dauer", "Varighed", "Duración", "Durée", "Durata"),
    "State": ("Zustand", "Tilstand", "Estado", "État", "Stato"),
    "Output": ("Ausgabe", "Output", "Salida", "Sortie", "Output"),
    "Time": ("Zeit", "Tid", "Hora", "Heure", "Ora"),
    "Event": ("Ereignis", "Hændelse", "Evento", "Événement", "Evento"),
    "Number": ("Anzahl", "Antal", "Número", "Nombre", "Numero"),
    "Message": ("Meldung", "Besked", "Mensaje", "Message", "Messaggio"),
    "Since": ("Seit", "Siden", "Desde", "Depuis", "Da"),
    "Handled": ("Bearbeitet", "Håndteret", "Atendido", "Traité", "Gestito"),
    "acknowledged": ("bestätigt", "bekræftet", "reconocido", "acquitté", "riconosciuto"),
    "in downtime": ("in Wartung", "i nedetid", "en mantenimiento", "en maintenance",
                    "in manutenzione"),
    "Page": ("Seite", "Side", "Página", "Page", "Pagina"),
    "of": ("von", "af", "de", "sur", "di"),
    "yes": ("ja", "ja", "sí", "oui", "sì"),
    "no": ("nein", "nej", "no", "non", "no"),
    "n/a": ("k. A.", "-", "n/d", "n/d", "n/d"),
    "There is nothing to show.": (
        "Es gibt nichts zu zeigen.", "Der er intet at vise.", "No hay nada que mostrar.",
        "Il n'y a rien à afficher.", "Non c'è nulla da mostrare."),
    "There were no outages.": (
        "Es gab keine Ausfälle.", "Der var ingen afbrydelser.", "No hubo interrupciones.",
        "Il n'y a pas eu d'interruption.", "Non ci sono state interruzioni."),
    "There are no problems.": (
        "Es gibt keine Probleme.", "Der er ingen problemer.", "No hay problemas.",
        "Il n'y a aucun problème.", "Non ci sono problemi."),
    "No object was found.": (
        "Es wurde kein Objekt gefunden.", "Der blev ikke fundet noget objekt.",
        "No se encontró ningún objeto.", "Aucun objet n'a été trouvé.",
        "Nessun oggetto trovato."),
    "Sites that did not answer": (
        "Standorte ohne Antwort", "Steder uden svar", "Sitios sin respuesta",
        "Sites sans réponse", "Siti senza risposta"),
    "more rows are left out": (
        "weitere Zeilen sind ausgelassen", "flere rækker er udeladt", "filas más omitidas",
        "lignes supplémentaires omises", "altre righe omesse"),
}  # fmt: skip


def speaker(language: str) -> Say:
    if language not in _ORDER:
        return lambda text: text
    at = _ORDER.index(language)

    def say(text: str) -> str:
        word = _WORDS.get(text)
        return text if word is None else word[at]

    return say


CellKind: TypeAlias = Literal["text", "number", "percent", "time", "duration", "state"]

_DAY, _HOUR, _MINUTE = 86400, 3600, 60


@frozen
class Head:
    """A column: its title, what its values are, and its share of the room for texts."""

    title: str
    kind: CellKind = "text"
    weight: float = 1.0


@frozen(kw_only=True)
class Grid:
    """A table. A value is a text, a number, Unix seconds, seconds or None as its column says.

    ``low``: percentages below it are shown as bad. ``empty`` is the text where there are no rows.
    The first ``lead`` columns name the object of a row, and are repeated with each part of a table
    that is too wide for the paper.
    """

    title: str
    heads: tuple[Head, ...]
    rows: Sequence[tuple[Any, ...]] = field(eq=False)
    low: float = 0.0
    empty: str = ""
    lead: int = 1

    def color(self, kind: CellKind, value: Any) -> str:
        """The color of a cell that stands out, else nothing."""
        if kind == "state":
            return STATES.get(str(value).lower(), "")
        return BAD if kind == "percent" and value is not None and value < self.low else ""


@frozen
class Note:
    """A sentence; ``bad``: one that must not be overlooked."""

    text: str
    bad: bool = False


@frozen
class Heading:
    """A title of what follows."""

    text: str


SheetPart: TypeAlias = Grid | Picture | Note | Heading


@frozen(kw_only=True)
class Spelling:
    """The formats of values: the language, the zone, formats of strftime, decimals, rounding."""

    zone: tzinfo
    language: str = "en"
    date: str = "%Y-%m-%d"
    moment: str = "%Y-%m-%d %H:%M:%S"
    decimals: int = 2
    rounding: Literal["round", "floor"] = "round"
    say: Say = field(init=False, eq=False)

    @say.default
    def _words(self) -> Say:
        return speaker(self.language)

    def rounded(self, value: float) -> Decimal:
        how = ROUND_FLOOR if self.rounding == "floor" else ROUND_HALF_UP
        return Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-self.decimals), how)

    def percent(self, value: float | None) -> str:
        return self.say("n/a") if value is None else f"{self.rounded(value)} %"

    def time(self, value: float) -> str:
        return self._dated(value, self.moment)

    def day(self, value: float) -> str:
        return self._dated(value, self.date)

    def _dated(self, value: float, form: str) -> str:
        try:
            return datetime.fromtimestamp(value, self.zone).strftime(form)
        except (ValueError, OverflowError, OSError):
            return str(int(value))

    def cell(self, kind: CellKind, value: Any) -> str:
        return "" if value is None and kind != "percent" else _CELLS[kind](self, value)


def duration(seconds: float) -> str:
    """Seconds as ``3d 04h 05m 06s``, from the greatest unit on that is there."""
    left = max(0, int(seconds))
    days, left = divmod(left, _DAY)
    hours, left = divmod(left, _HOUR)
    minutes, left = divmod(left, _MINUTE)
    if days:
        return f"{days}d {hours:02}h {minutes:02}m {left:02}s"
    if hours:
        return f"{hours}h {minutes:02}m {left:02}s"
    return f"{minutes}m {left:02}s" if minutes else f"{left}s"


_CELLS: dict[CellKind, Callable[[Spelling, Any], str]] = {
    "text": lambda _, value: str(value),
    "number": lambda _, value: str(value),
    "state": lambda _, value: str(value),
    "percent": lambda how, value: how.say("n/a") if value is None else str(how.rounded(value)),
    "time": lambda how, value: how.time(value),
    "duration": lambda _, value: duration(value),
}


@frozen(kw_only=True)
class Sheet:
    """A whole report. ``facts`` are what stands at its top; ``data`` is for programs (JSON).

    ``worst`` is the least availability of an object, None where that is not what it is about.
    ``kept`` are forms of it that are there already, by name.
    """

    title: str
    facts: tuple[tuple[str, str], ...]
    parts: tuple[SheetPart, ...]
    spelling: Spelling
    worst: float | None = None
    data: Any = None
    kept: Mapping[str, bytes] = field(factory=dict, eq=False, repr=False)

    @property
    def grids(self) -> list[Grid]:
        return [part for part in self.parts if isinstance(part, Grid)]
