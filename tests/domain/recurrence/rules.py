"""Rules and places that tests try: where clocks do odd things, and expressions that notice."""

from __future__ import annotations

PLACES: tuple[tuple[str, int], ...] = (
    ("America/New_York", 2024),
    ("Europe/London", 2024),
    ("Europe/Berlin", 2024),
    ("Europe/Dublin", 2024),
    ("Australia/Lord_Howe", 2024),  # by half an hour
    ("Australia/Sydney", 2024),
    ("Pacific/Chatham", 2024),  # +12:45
    ("America/Sao_Paulo", 2017),  # at midnight
    ("America/Santiago", 2024),
    ("America/Havana", 2024),
    ("America/St_Johns", 2010),  # at 00:01
    ("America/Caracas", 2015),
    ("America/Nuuk", 2023),
    ("Africa/Casablanca", 2024),  # around Ramadan
    ("Africa/Cairo", 2023),
    ("Asia/Tehran", 2021),
    ("Asia/Pyongyang", 2017),
    ("Pacific/Apia", 2011),  # a day skipped
    ("Antarctica/Troll", 2024),  # by two hours
    ("Antarctica/Casey", 2009),  # by three
    ("UTC", 2024),
)
"""Each with the first of two years."""

EXPRESSIONS: tuple[str, ...] = (
    "* * * * *",
    "*/15 * * * *",
    "*/7 * * * *",
    "10/25 * * * *",
    "20-40 * * * *",
    "0 * * * *",
    "30 * * * *",
    "0,45 * * * mon-fri",
    "*/15 2 * * *",
    "*/20 1 * * *",
    "* 0 * * *",
    "* 23 * * sat",
    "0 */2 * * *",
    "30 */3 * * *",
    "0 */6 * * *",
    "15 * */3 * *",
    "0 0-23 * * *",
    "0 1-4 * * *",
    "0 0 * * *",
    "1 0 * * *",
    "30 0 * * 0",
    "0 1 * * *",
    "30 1 * * *",
    "30 2 * * *",
    "0 2 * * *",
    "59 2 * * *",
    "0,30 2,3 * * *",
    "30 1,2,3 * * *",
    "45 3 * * *",
    "30 23 * * *",
    "0 9 * * mon-fri",
    "0 12 * * *",
    "0 0 1 * *",
    "0 0 L * *",
    "30 2 15,L * *",
    "0 3 15W * *",
    "30 1 * * sun#1",
    "30 2 * * L0",
    "0 0 13 * 5",
    "30 2 * nov-mar fri-mon",
    "0 9 29 2 *",
)
