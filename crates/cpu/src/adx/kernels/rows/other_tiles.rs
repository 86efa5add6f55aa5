//! The common end of rows over several tiles.

use core::arch::naked_asm;

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
pub(super) unsafe extern "sysv64" fn other_tiles() {
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
