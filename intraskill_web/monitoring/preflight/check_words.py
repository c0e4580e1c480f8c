"""What the trainer's checks find, refuse and say to do about it, for ``words.worded``.

The sentences are those of trainer/preflight/checks.py, and of what reads banks, worlds and JSON; a
place is a word, or more of them where ``words.SEVERAL`` names it. Tests hold that none is missing.
"""

from __future__ import annotations

from django.utils.translation import gettext_noop as _

FINDINGS = (
    _("profile %(profile)s, catalogue %(hash)s"),
    _("%(n)s active chunks, hash %(hash)s"),
    _("state %(hash)s, %(n)s chunks"),
    _("built from this bank"),
    _("%(n)s chunks equal those of the bank, in order"),
    _("every contribution is positive or held"),
    _("%(n)s chunks carry an effect to start from"),
    _("%(n)s tasks, ids %(hash)s"),
    _("%(n)s tasks in %(split)s"),
    _("bound to this catalogue, without an id"),
    _("bound to this catalogue, %(id)s"),
    _("%(id)s served as %(model)s"),
    _("%(model)s at %(url)s"),
    _("%(n)s active chunks, %(candidates)s candidates"),
    _("%(n)s chunks, of which %(most)s may become active"),
    _("none"),
    _("none named"),
    _("%(n)s GiB free"),
)

FAULTS = (
    _("no such file"),
    _("is a folder, not a file"),
    _("not valid JSON: %(why)s"),
    _("no answer within %(n)s s"),
    _("not checked: needs the world"),
    _("not checked: needs the skill bank"),
    _("not checked: needs the curriculum"),
    _("the rule-based analyst writes for worlds of single words"),
    _("the environment holds no key for the analyst's server"),
    _("the curriculum was built from another bank than %(bank)s"),
    _("chunks differ from those of the bank in id, version, text, effect or order"),
    _("an active chunk needs a positive contribution"),
    _("%(n)s tasks differ from the frozen train split"),
    _("the %(split)s split has only %(n)s tasks"),
    _("a chat server calls functions, and this world speaks words"),
    _("the checkpoint was made for another catalogue than %(hash)s"),
    _("only %(n)s GiB are free"),
    _("a skill bank must be a JSON object"),
    _("unsupported skill bank"),
    _("must be a list"),
    _("must be an object"),
    _("must be a non-blank string"),
    _("must be a list of task ids or null"),
    _("ids must be unique"),
    _("unknown split"),
    _("unknown task"),
    _("the mini profile generates its catalogue"),
    _("belongs to a catalogue file, and none was named"),
)

REMEDIES = (
    _("Correct the file, then check again"),
    _("Choose kind: endpoint for this profile"),
    _("Export it; a server that asks for none takes any value"),
    _("Build it anew from this bank, whose hash is %(hash)s"),
    _("Build the curriculum anew from the bank"),
    _("Remove the chunk from the bank and build the curriculum anew"),
    _("Write the file anew with `prepare-data`"),
    _("Ask for fewer"),
    _("Choose another profile"),
    _("Use the checkpoint that belongs to this world"),
    _("Run the stage that writes it first"),
    _("Free at least %(n)s GiB"),
    _("expected %(what)s"),
    _("Known splits: %(names)s"),
    _("The world has %(n)s tasks; see World.tasks"),
    _("Leave it out, or choose another profile"),
    _("Name the file as the catalogue too, or leave this out"),
)
