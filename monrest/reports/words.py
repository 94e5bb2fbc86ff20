"""The words of reports in their languages. Pure.

A word that a language does not have is said in English.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

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
    """The words of a language."""
    if language not in _ORDER:
        return lambda text: text
    at = _ORDER.index(language)

    def say(text: str) -> str:
        known = _WORDS.get(text)
        return text if known is None else known[at]

    return say
