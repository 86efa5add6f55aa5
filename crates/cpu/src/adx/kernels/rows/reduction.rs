//! Rows of the reduction.

use core::arch::naked_asm;

use super::other_tiles::other_tiles;
use crate::adx::unit::Tile;

/// See `Unit::eliminate`.
///
/// # Safety
///
/// The processor has MULX, ADCX and ADOX; there are `count` tiles at `modulus`, at least one, and
/// one more at `sum`.
#[unsafe(naked)]
pub(crate) unsafe extern "sysv64" fn eliminate(
    sum: *mut Tile,
    modulus: *const Tile,
    count: usize,
    neg_inv_low: u64,
    neg_inv_high: u64,
    carry: u64,
) -> u64 {
    naked_asm!(
        enter!("2", "r8", "r9", "rdx"),
        "mov rbp, rcx",
        "mov rcx, rdi",
        // The lowest tile of the modulus gives the quotient, which replaces the lowest tile of the
        // sum.
        load_sum!(),
        two_rows_of_reduction!(
            "0", "8", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "rax"
        ),
        two_rows_of_reduction!(
            "16", "24", "r10", "r11", "r12", "r13", "r14", "r15", "rax", "r8", "r9"
        ),
        two_rows_of_reduction!(
            "32", "40", "r12", "r13", "r14", "r15", "rax", "r8", "r9", "r10", "r11"
        ),
        two_rows_of_reduction!(
            "48", "56", "r14", "r15", "rax", "r8", "r9", "r10", "r11", "r12", "r13"
        ),
        "mov rdi, rcx",
        // If this is also the last tile, it takes the carry.
        "xor ebp, ebp",
        "cmp qword ptr [rsp], 1",
        "cmove rbp, [rsp + 8]",
        add_next_tile!("rax", "r8", "r9", "r10", "r11", "r12", "r13", "r14"),
        next_tile!(),
        "jmp {}",
        sym other_tiles,
    )
}
