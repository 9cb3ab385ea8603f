"""The execute side: generated C or NumPy that consumes the queues; see `ExecuteSide`.

| module | what it does |
| --- | --- |
| `chunk` | what comes out of the queues |
| `queues` | bundles whose rows are all there, and where each row lies |
| `checks` | what must hold while code runs, as statements of its own |
| `c_source`, `c_compiler`, `c_engine` | the engine `c` |
| `numpy_engine` | the engine `numpy` |
| `side` | one launch |
| `results` | one launch whose rows go through a reduce unit |
"""

from ember_hw.host.execution.chunk import Chunk, unpack_bundles
from ember_hw.host.execution.results import ResultSide
from ember_hw.host.execution.side import ENGINES, ExecuteSide

__all__ = ["ENGINES", "Chunk", "ExecuteSide", "ResultSide", "unpack_bundles"]
