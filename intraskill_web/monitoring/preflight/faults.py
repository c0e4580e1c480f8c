"""What the trainer's checks refuse, and what they say to do about it, for ``words.worded``.

Patterns are the trainer's English (trainer/preflight/checks.py, and what reads banks, worlds and
JSON); groups carry over by name. Tests hold that none of those sentences is missing.
"""

from __future__ import annotations

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

Sentences = tuple[tuple[str, str | Promise], ...]

FAULTS: Sentences = (
    (r"no such file", _("no such file")),
    (r"is a folder, not a file", _("is a folder, not a file")),
    (r"not valid JSON: (?P<why>.+)", _("not valid JSON: %(why)s")),
    (r"no answer within (?P<n>\d+) s", _("no answer within %(n)s s")),
    (r"not checked: needs the world", _("not checked: needs the world")),
    (r"not checked: needs the skill bank", _("not checked: needs the skill bank")),
    (r"not checked: needs the curriculum", _("not checked: needs the curriculum")),
    (
        r"the rule-based analyst writes for worlds of single words",
        _("the rule-based analyst writes for worlds of single words"),
    ),
    (
        r"the environment holds no key for the analyst's server",
        _("the environment holds no key for the analyst's server"),
    ),
    (
        r"the curriculum was built from another bank than (?P<bank>.+)",
        _("the curriculum was built from another bank than %(bank)s"),
    ),
    (
        r"chunks differ from those of the bank in id, version, text, effect or order",
        _("chunks differ from those of the bank in id, version, text, effect or order"),
    ),
    (
        r"an active chunk needs a positive contribution",
        _("an active chunk needs a positive contribution"),
    ),
    (
        r"(?P<n>\d+) tasks differ from the frozen train split",
        _("%(n)s tasks differ from the frozen train split"),
    ),
    (
        r"the (?P<split>\w+) split has only (?P<n>\d+) tasks",
        _("the %(split)s split has only %(n)s tasks"),
    ),
    (
        r"a chat server calls functions, and this world speaks words",
        _("a chat server calls functions, and this world speaks words"),
    ),
    (
        r"the checkpoint was made for another catalogue than (?P<hash>\w+)",
        _("the checkpoint was made for another catalogue than %(hash)s"),
    ),
    (r"only (?P<n>[\d.]+) GiB are free", _("only %(n)s GiB are free")),
    (r"a skill bank must be a JSON object", _("a skill bank must be a JSON object")),
    (r"unsupported skill bank", _("unsupported skill bank")),
    (r"must be a list", _("must be a list")),
    (r"must be an object", _("must be an object")),
    (r"must be a non-blank string", _("must be a non-blank string")),
    (r"must be a list of task ids or null", _("must be a list of task ids or null")),
    (r"ids must be unique", _("ids must be unique")),
    (r"unknown split", _("unknown split")),
    (r"unknown task", _("unknown task")),
    (
        r"the mini profile generates its catalogue",
        _("the mini profile generates its catalogue"),
    ),
    (
        r"belongs to a catalogue file, and none was named",
        _("belongs to a catalogue file, and none was named"),
    ),
)

REMEDIES: Sentences = (
    (r"Correct the file, then check again", _("Correct the file, then check again")),
    (r"Choose kind: endpoint for this profile", _("Choose kind: endpoint for this profile")),
    (
        r"Export it; a server that asks for none takes any value",
        _("Export it; a server that asks for none takes any value"),
    ),
    (
        r"Build it anew from this bank, whose hash is (?P<hash>\w+)",
        _("Build it anew from this bank, whose hash is %(hash)s"),
    ),
    (
        r"Build the curriculum anew from the bank",
        _("Build the curriculum anew from the bank"),
    ),
    (
        r"Remove the chunk from the bank and build the curriculum anew",
        _("Remove the chunk from the bank and build the curriculum anew"),
    ),
    (r"Write the file anew with `prepare-data`", _("Write the file anew with `prepare-data`")),
    (r"Ask for fewer", _("Ask for fewer")),
    (r"Choose another profile", _("Choose another profile")),
    (
        r"Use the checkpoint that belongs to this world",
        _("Use the checkpoint that belongs to this world"),
    ),
    (
        r"Run the stage that writes it first",
        _("Run the stage that writes it first"),
    ),
    (r"Free at least (?P<n>\d+) GiB", _("Free at least %(n)s GiB")),
    (r"expected (?P<what>\S+)", _("expected %(what)s")),
    (r"Known splits: (?P<names>.*)", _("Known splits: %(names)s")),
    (
        r"The world has (?P<n>\d+) tasks; see World\.tasks",
        _("The world has %(n)s tasks; see World.tasks"),
    ),
    (
        r"Leave it out, or choose another profile",
        _("Leave it out, or choose another profile"),
    ),
    (
        r"Name the file as the catalogue too, or leave this out",
        _("Name the file as the catalogue too, or leave this out"),
    ),
)
