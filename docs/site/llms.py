"""
`llms.txt`: what a model reads to find its way, a link and one line for each page.
"""

from .nav import built, sections
from .titles import title


SAID = "Guards around the tool calls of an LLM agent: budgets that hold, repeats that stop, results that explain themselves."


def llms() -> str:
    """
    The text of the file, as llmstxt.org has it: a title, one sentence, a list for each section.
    """
    text = f"# toolcall-guardrails\n\n> {SAID}\n"
    for section in sections():
        text += f"\n## {section.title}\n\n"
        text += "".join(f"- [{title(page)}]({built(page)}.html): {line}\n" for page, line in section.pages.items())
    return text
