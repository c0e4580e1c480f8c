"""The words of the embedded world.

Every word that a page, a task, an action or a shipped chunk can contain is listed here; together
they are the vocabulary of the embedded policy. The order of ``vocabulary()`` is the order of token
ids, so a change of any list makes a new vocabulary, and a checkpoint of the old one keeps its own.
"""

from __future__ import annotations


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


BRANDS = _words(
    "acme birk corvo delta elba fenn garo halo iris juno kesh lumo mira nord opal pico quin rusk"
    " sova tarn ulmo vega wren zeta"
)
CATEGORIES = _words(
    "bag blanket boots bottle chair desk jacket kettle knife lamp mug pan pillow rug shirt speaker"
    " stool tent towel watch"
)
FEATURES = _words(
    "breathable compact elegant foldable heavy light modern padded plain portable quiet rustic slim"
    " smart soft sturdy vintage warm waterproof wide"
)
MATERIALS = _words("bamboo ceramic copper cotton felt glass leather linen nylon oak steel wool")
COLOURS = _words("black blue green grey pink red white yellow")
SIZES = _words("xs s m l xl")

MAX_PRICE = 50
PRICES = tuple(f"${amount}" for amount in range(1, MAX_PRICE + 1))
MAX_RANK = 9  # entries that one results page may number
RANKS = tuple(f"#{rank}" for rank in range(1, MAX_RANK + 1))
NUMBERS = tuple(str(number) for number in range(1, 10))

VERBS = ("search", "open", "next", "back", "details", "select", "buy")
LAYOUT = _words(
    "skill ; persona request brand material colour size budget home results page of seen none item"
    " unknown price colours sizes chosen error done"
)

# Words that chunks are written in, in alphabetical order. A chunk may use any other word of the
# vocabulary too; a word outside it is read as one unknown word.
PROSE = _words(
    """
    a about above add afford again against all always an and are around as ask at attend attributes
    avoid away be before best better buying by calm can careful carefully check choose choosing cost
    costs day decide do does each end every exceed fast few find fit fits friendly from go good has
    have hidden hurry if in include instead into is it items its keep kind know lack lacking lacks
    later leave limit list listed look made match matches matter mention mind missing more move name
    named never next no not nothing notice offer offered offers often on once one only open option
    options or other over pages paid patient pay pick plan polite possible preferred product
    products put query question quick quickly read reads reason remain respect result return right
    same save see seller set sets shop short show shown shows skip slow slowly sponsored start stay
    stays stop style take tell than thank that the their them then there they things think this time
    to tone too try turn turns under unit unless until use user variant visit wait want wanted wants
    watch well what when where which while with within without word words work you
    """
)

SPECIAL = ("<pad>", "<s>", "<act>", "<end>", "<unk>")


def vocabulary() -> tuple[str, ...]:
    """Every word once, special words first; a word's position is its token id."""
    groups = (
        SPECIAL,
        LAYOUT,
        VERBS,
        RANKS,
        NUMBERS,
        PRICES,
        BRANDS,
        CATEGORIES,
        FEATURES,
        MATERIALS,
        COLOURS,
        SIZES,
        PROSE,
    )
    return tuple(dict.fromkeys(word for group in groups for word in group))
