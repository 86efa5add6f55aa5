//! Rows of a product, of a square, and of the reduction.

use core::arch::naked_asm;

use crate::adx::montgomery::Tile;

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

/// The common end of kernels over several tiles, which begin with [`enter`](enter!).
///
/// Adds the tile at RCX times the tiles at RSI to the sum at RDI, and RBP with the weight of the
/// second tile of that sum. The first tile of the sum is in RAX and R8 to R14, where eight rows
/// leave it. Returns the carry out.
///
/// All kernels share one copy. A processor caches decoded instructions, and that cache is halved
/// while another thread runs on the same core.
///
/// # Safety
///
/// Reached by a jump only. The processor has MULX, ADCX and ADOX. The tiles are there, with one
/// more at the sum.
#[unsafe(naked)]
unsafe extern "sysv64" fn other_tiles() {
    naked_asm!(
        "cmp qword ptr [rsp], 0",
        "je 4f",
        "2:",
        // Moves the sum to the registers of a row.
        "mov r15, r14",
        "mov r14, r13",
        "mov r13, r12",
        "mov r12, r11",
        "mov r11, r10",
        "mov r10, r9",
        "mov r9, r8",
        "mov r8, rax",
        row_of_product!(
            "0", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "rax"
        ),
        row_of_product!(
            "8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "rax", "r8"
        ),
        row_of_product!(
            "16", "r10", "r11", "r12", "r13", "r14", "r15", "rax", "r8", "r9"
        ),
        row_of_product!(
            "24", "r11", "r12", "r13", "r14", "r15", "rax", "r8", "r9", "r10"
        ),
        row_of_product!(
            "32", "r12", "r13", "r14", "r15", "rax", "r8", "r9", "r10", "r11"
        ),
        row_of_product!(
            "40", "r13", "r14", "r15", "rax", "r8", "r9", "r10", "r11", "r12"
        ),
        row_of_product!(
            "48", "r14", "r15", "rax", "r8", "r9", "r10", "r11", "r12", "r13"
        ),
        row_of_product!(
            "56", "r15", "rax", "r8", "r9", "r10", "r11", "r12", "r13", "r14"
        ),
        "cmp qword ptr [rsp], 1",
        "je 5f",
        "cmp qword ptr [rsp + 32], 0",
        "je 3f",
        add_next_tile!("rax", "r8", "r9", "r10", "r11", "r12", "r13", "r14"),
        "3:",
        next_tile!(),
        "jmp 2b",
        // The last tile.
        "5:",
        "cmp qword ptr [rsp + 32], 1",
        "jb 7f",
        "ja 6f",
        add_next_tile!("rax", "r8", "r9", "r10", "r11", "r12", "r13", "r14"),
        "jmp 7f",
        "6:",
        add_last_tile!("rax", "r8", "r9", "r10", "r11", "r12", "r13", "r14"),
        "7:",
        "add rdi, 64",
        "4:",
        "mov [rdi], rax",
        "mov [rdi + 8], r8",
        "mov [rdi + 16], r9",
        "mov [rdi + 24], r10",
        "mov [rdi + 32], r11",
        "mov [rdi + 40], r12",
        "mov [rdi + 48], r13",
        "mov [rdi + 56], r14",
        "mov rax, rbp",
        "add rsp, 40",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbp",
        "pop rbx",
        "ret",
    )
}
