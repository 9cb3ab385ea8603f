"""Registers of the generated controller, by their names in LiteDRAM; the build checks them."""

from __future__ import annotations

#: Byte addresses, from the first of the board's own registers on. Registers of 64 bits are two, the
#: higher half first. Ref: csr.json of litedram_gen.
REGISTERS = {
    "ddrctrl_init_done": 0x0000,
    "ddrctrl_init_error": 0x0004,
    "ddrphy_dly_sel": 0x0800,
    "ddrphy_rdly_dq_rst": 0x0804,
    "ddrphy_rdly_dq_inc": 0x0808,
    "ddrphy_rdly_dq_bitslip_rst": 0x080C,
    "ddrphy_rdly_dq_bitslip": 0x0810,
    "ddrphy_burstdet_clr": 0x0814,
    "ddrphy_burstdet_seen": 0x0818,
    "sdram_dfii_control": 0x1000,
    "sdram_dfii_pi0_command": 0x1004,
    "sdram_dfii_pi0_command_issue": 0x1008,
    "sdram_dfii_pi0_address": 0x100C,
    "sdram_dfii_pi0_baddress": 0x1010,
    "sdram_dfii_pi0_wrdata": 0x1014,
    "sdram_dfii_pi0_rddata": 0x101C,
    "sdram_dfii_pi1_command": 0x1024,
    "sdram_dfii_pi1_command_issue": 0x1028,
    "sdram_dfii_pi1_address": 0x102C,
    "sdram_dfii_pi1_baddress": 0x1030,
    "sdram_dfii_pi1_wrdata": 0x1034,
    "sdram_dfii_pi1_rddata": 0x103C,
}
