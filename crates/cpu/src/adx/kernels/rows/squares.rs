//! Rows of a square.

use core::arch::naked_asm;

use super::other_tiles::other_tiles;
use crate::adx::unit::Tile;

/// See `Unit::square`.
///
/// # Safety
///
/// The processor has MULX, ADCX and ADOX; there are `count` tiles at `a`, at least one, and one
/// more at `product`.
#[unsafe(naked)]
pub(crate) unsafe extern "sysv64" fn square(product: *mut Tile, a: *const Tile, count: usize) {
    naked_asm!(
        enter!("0", "0", "0", "rdx"),
        "mov rcx, rsi",
        "mov rdx, [rsi]",
        "mov qword ptr [rdi], 0",
        // Nothing to add to yet: a single carry chain.
        "mulx r10, r9, [rsi + 8]",
        "mulx r11, rax, [rsi + 16]",
        "add r10, rax",
        "mulx r12, rax, [rsi + 24]",
        "adc r11, rax",
        "mulx r13, rax, [rsi + 32]",
        "adc r12, rax",
        "mulx r14, rax, [rsi + 40]",
        "adc r13, rax",
        "mulx r15, rax, [rsi + 48]",
        "adc r14, rax",
        "mulx rax, rbx, [rsi + 56]",
        "adc r15, rbx",
        "adc rax, 0",
        "jmp {}",
        sym triangle,
    )
}

/// See `Unit::square_add`.
///
/// # Safety
///
/// The processor has MULX, ADCX and ADOX; there are `count` tiles at `a`, at least one, and one
/// more at `sum`.
#[unsafe(naked)]
pub(crate) unsafe extern "sysv64" fn square_add(sum: *mut Tile, a: *const Tile, count: usize) {
    naked_asm!(
        enter!("1", "0", "0", "rdx"),
        "mov rcx, rsi",
        load_sum!(),
        "mov rdx, [rsi]",
        "xor ebx, ebx",
        product!("8", "r9", "r10", "r8"),
        product!("16", "r10", "r11", "r8"),
        product!("24", "r11", "r12", "r8"),
        product!("32", "r12", "r13", "r8"),
        product!("40", "r13", "r14", "r8"),
        product!("48", "r14", "r15", "r8"),
        last_product!("r15", "rax"),
        "jmp {}",
        sym triangle,
    )
}

/// The common part of squares: all rows of the lowest tile from the second on. Each row is shorter
/// than the one before.
///
/// # Safety
///
/// Reached by a jump only. The processor has MULX, ADCX and ADOX. The tiles are there, with one
/// more at the sum.
#[unsafe(naked)]
unsafe extern "sysv64" fn triangle() {
    naked_asm!(
        "mov [rdi + 8], r9",
        "mov [rdi + 16], r10",
        "mov rdx, [rsi + 8]",
        "xor ebx, ebx",
        product!("16", "r11", "r12", "r9"),
        product!("24", "r12", "r13", "r9"),
        product!("32", "r13", "r14", "r9"),
        product!("40", "r14", "r15", "r9"),
        product!("48", "r15", "rax", "r9"),
        last_product!("rax", "r8"),
        "mov [rdi + 24], r11",
        "mov [rdi + 32], r12",
        "mov rdx, [rsi + 16]",
        "xor ebx, ebx",
        product!("24", "r13", "r14", "r10"),
        product!("32", "r14", "r15", "r10"),
        product!("40", "r15", "rax", "r10"),
        product!("48", "rax", "r8", "r10"),
        last_product!("r8", "r9"),
        "mov [rdi + 40], r13",
        "mov [rdi + 48], r14",
        "mov rdx, [rsi + 24]",
        "xor ebx, ebx",
        product!("32", "r15", "rax", "r11"),
        product!("40", "rax", "r8", "r11"),
        product!("48", "r8", "r9", "r11"),
        last_product!("r9", "r10"),
        "mov [rdi + 56], r15",
        "mov rdx, [rsi + 32]",
        "xor ebx, ebx",
        product!("40", "r8", "r9", "r12"),
        product!("48", "r9", "r10", "r12"),
        last_product!("r10", "r11"),
        "mov rdx, [rsi + 40]",
        "xor ebx, ebx",
        product!("48", "r10", "r11", "r13"),
        last_product!("r11", "r12"),
        "mov rdx, [rsi + 48]",
        "xor ebx, ebx",
        last_product!("r12", "r13"),
        "xor r14d, r14d",
        "xor ebp, ebp",
        "cmp qword ptr [rsp + 32], 0",
        "je 3f",
        add_next_tile!("rax", "r8", "r9", "r10", "r11", "r12", "r13", "r14"),
        "3:",
        next_tile!(),
        "jmp {}",
        sym other_tiles,
    )
}
