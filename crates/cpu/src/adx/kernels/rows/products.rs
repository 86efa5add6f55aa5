//! Rows of a product.

use core::arch::naked_asm;

use super::other_tiles::other_tiles;
use crate::adx::unit::Tile;

/// See `Unit::multiply`.
///
/// # Safety
///
/// The processor has MULX, ADCX and ADOX; there are `count` tiles at `a`, at least one, and one
/// more at `product`.
#[unsafe(naked)]
pub(crate) unsafe extern "sysv64" fn multiply(
    product: *mut Tile,
    a: *const Tile,
    b: &Tile,
    count: usize,
) {
    naked_asm!(
        enter!("0", "0", "0", "rcx"),
        "mov rcx, rdx",
        "xor ebp, ebp",
        "xor eax, eax",
        "xor r8d, r8d",
        "xor r9d, r9d",
        "xor r10d, r10d",
        "xor r11d, r11d",
        "xor r12d, r12d",
        "xor r13d, r13d",
        "xor r14d, r14d",
        "jmp {}",
        sym other_tiles,
    )
}

/// See `Unit::multiply_add`.
///
/// # Safety
///
/// The processor has MULX, ADCX and ADOX; there are `count` tiles at `a`, at least one, and one
/// more at `sum`.
#[unsafe(naked)]
pub(crate) unsafe extern "sysv64" fn multiply_add(
    sum: *mut Tile,
    a: *const Tile,
    b: &Tile,
    count: usize,
) {
    naked_asm!(
        enter!("1", "0", "0", "rcx"),
        "mov rcx, rdx",
        "xor ebp, ebp",
        "mov rax, [rdi]",
        "mov r8, [rdi + 8]",
        "mov r9, [rdi + 16]",
        "mov r10, [rdi + 24]",
        "mov r11, [rdi + 32]",
        "mov r12, [rdi + 40]",
        "mov r13, [rdi + 48]",
        "mov r14, [rdi + 56]",
        "jmp {}",
        sym other_tiles,
    )
}
