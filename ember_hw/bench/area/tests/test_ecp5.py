from __future__ import annotations

from ember_hw.bench.area import ecp5


def test_report_gives_frequency_and_path_of_the_clock() -> None:
    def step(kind: str, delay: float, cell: str) -> dict[str, object]:
        return {"type": kind, "delay": delay, "to": {"cell": cell}}

    clock = {"from": "posedge $glb$clk", "to": "posedge $glb$clk"}
    path = [
        step("clk-to-q", 0.5, "credit_FF"),
        step("routing", 1.25, "room_LUT4"),
        step("logic", 0.25, "room_LUT4"),
        step("setup", 0.0, "level_FF"),
    ]
    report = {
        "fmax": {"$glb$clk": {"achieved": 89.5, "constraint": 100}},
        "critical_paths": [
            {"from": "<async>", "to": "posedge $glb$clk", "path": path[:1]},
            {**clock, "path": path},
        ],
    }
    route = ecp5.read_report(report)
    assert route.fmax_mhz == 89.5
    assert route.critical_path == ("0.50 credit_FF", "2.00 room_LUT4", "2.00 level_FF")
