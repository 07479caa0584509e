"""Why an object is as it is: the tree of what it owns and uses, the health of each, and the chain to the cause.

    from konverge.explain import Gatherer, Ref

    answer = await Gatherer(client).why(Ref("Deployment", "web", "shop", "apps"))
    print(answer.sentence)

The core is pure: `Explainer(World(objects))` explains any objects, such as those of a test that failed. `Gatherer`
fetches from a cluster what that needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from konverge.lazy_imports import lazy_names

if TYPE_CHECKING:
    from konverge.explain.answer import Answer as Answer
    from konverge.explain.answer import Branch as Branch
    from konverge.explain.answer import Step as Step
    from konverge.explain.answer import as_json as as_json
    from konverge.explain.explainer import Explainer as Explainer
    from konverge.explain.explainer import grouped as grouped
    from konverge.explain.gather import Gatherer as Gatherer
    from konverge.explain.model import Health as Health
    from konverge.explain.model import Link as Link
    from konverge.explain.model import Ref as Ref
    from konverge.explain.model import Verdict as Verdict
    from konverge.explain.texts import printable as printable
    from konverge.explain.world import World as World

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "konverge.explain.answer": "Answer Branch Step as_json",
        "konverge.explain.explainer": "Explainer grouped",
        "konverge.explain.gather": "Gatherer",
        "konverge.explain.model": "Health Link Ref Verdict",
        "konverge.explain.texts": "printable",
        "konverge.explain.world": "World",
    },
)
