"""
The four errands that the scenes are about, each with a tool for it and one beside it.
"""

from typing import Any, Final, NamedTuple

from guardrails import Tool
from guardrails.testing.replies import ScriptedCall, call


class Topic(NamedTuple):
    """
    An errand of a user, and the tools that an agent has for it.
    """

    question: str
    vague: str
    """The same question without what the tool has to be told."""
    tool: str
    about: str
    key: str
    values: tuple[str, str, str, str]
    """Four things that may be asked for; the first is what the user asks for."""
    choice: str
    choices: tuple[str, str]
    wrong: str
    """What is meant by the first of *choices*, and is none of them."""
    found: dict[str, Any]
    other: str
    other_about: str
    other_key: str

    def arguments(self, n: int = 0) -> dict[str, str]:
        """
        Returns the arguments that ask for thing number *n*.
        """
        return {self.key: self.values[n], self.choice: self.choices[0]}

    def asks(self, n: int = 0, **changed: str | None) -> ScriptedCall:
        """
        Returns a call that asks for thing number *n*, with arguments *changed*; one that is None is left out.
        """
        made = {**self.arguments(n), **changed}
        return call(self.tool, {name: value for name, value in made.items() if value is not None})

    @property
    def tools(self) -> tuple[Tool, Tool]:
        """
        The tool, and the one beside it.
        """
        both = {self.key: {"type": "string"}, self.choice: {"type": "string", "enum": list(self.choices)}}
        one = {self.other_key: {"type": "string"}}
        return (
            Tool(name=self.tool, description=self.about, parameters=_object(both)),
            Tool(name=self.other, description=self.other_about, parameters=_object(one)),
        )


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


TOPICS: Final = (
    Topic(
        question="Find a hotel in Shibuya, price in USD.",
        vague="Find a hotel, price in USD.",
        tool="search_hotels",
        about="Find hotels in a city.",
        key="city",
        values=("Shibuya", "Ginza", "Ueno", "Asakusa"),
        choice="currency",
        choices=("USD", "EUR"),
        wrong="dollars",
        found={"name": "Sakura Inn", "price": 150},
        other="list_cities",
        other_about="List the cities of a region.",
        other_key="region",
    ),
    Topic(
        question="What is the weather in Oslo, in C?",
        vague="What is the weather, in C?",
        tool="get_weather",
        about="Get the weather of a place.",
        key="place",
        values=("Oslo", "Bergen", "Moss", "Voss"),
        choice="unit",
        choices=("C", "F"),
        wrong="degrees",
        found={"sky": "rain", "temperature": 7},
        other="list_places",
        other_about="List the places of a country.",
        other_key="country",
    ),
    Topic(
        question="Where is order A-17? Give me the address as text.",
        vague="Where is my order? Give me the address as text.",
        tool="find_order",
        about="Find an order by its number.",
        key="order",
        values=("A-17", "A-18", "B-17", "17"),
        choice="form",
        choices=("text", "json"),
        wrong="words",
        found={"address": "4 Mill Lane", "state": "sent"},
        other="list_orders",
        other_about="List the orders of a customer.",
        other_key="customer",
    ),
    Topic(
        question="Read chapter two of the manual in English.",
        vague="Read the manual in English.",
        tool="read_page",
        about="Read a page of the manual.",
        key="page",
        values=("two", "chapter two", "2", "ii"),
        choice="language",
        choices=("en", "de"),
        wrong="English",
        found={"title": "Cleaning", "text": "Clean the filter each month."},
        other="list_pages",
        other_about="List the pages of a book.",
        other_key="book",
    ),
)
