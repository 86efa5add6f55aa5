//! Rows of products in assembly.
//!
//! RSI points to a factor, RDX is a word of the other one, and R8 to R15 and RAX hold words of the sum, RBX the low half of
//! a product. ADCX carries low halves on, by the carry flag, and ADOX high ones, by the overflow flag.

use core::arch::naked_asm;

use crate::backend::adx::unit::Block;

/// Adds RDX times the word at RSI plus `$at` to `$low` and, its high half, to `$above`, by way of `$high`.
macro_rules! product {
    ($at:literal, $low:literal, $above:literal, $high:literal) => {
        concat!(
            "mulx ",
            $high,
            ", rbx, [rsi + ",
            $at,
            "]\n",
            "adcx ",
            $low,
            ", rbx\n",
            "adox ",
            $above,
            ", ",
            $high,
            "\n",
        )
    };
}

/// The last product of a row, whose high half and carries are a new word of the sum, `$top`.
macro_rules! last_product {
    ($low:literal, $top:literal) => {
        concat!(
            "mulx ",
            $top,
            ", rbx, [rsi + 56]\n",
            "adcx ",
            $low,
            ", rbx\n",
            "mov ebx, 0\n",
            "adox ",
            $top,
            ", rbx\n",
            "adcx ",
            $top,
            ", rbx\n",
        )
    };
}

/// Adds RDX times a block to a sum of eight words, which gets a ninth.
macro_rules! row {
    ($r0:literal, $r1:literal, $r2:literal, $r3:literal, $r4:literal, $r5:literal, $r6:literal, $r7:literal, $top:literal) => {
        concat!(
            // Without carries.
            "xor ebx, ebx\n",
            product!("0", $r0, $r1, $top),
            product!("8", $r1, $r2, $top),
            product!("16", $r2, $r3, $top),
            product!("24", $r3, $r4, $top),
            product!("32", $r4, $r5, $top),
            product!("40", $r5, $r6, $top),
            product!("48", $r6, $r7, $top),
            last_product!($r7, $top),
        )
    };
}

/// A row by the word at RCX plus `$at`; the lowest word of the sum is done.
macro_rules! row_of_product {
    ($at:literal, $r0:literal, $($rest:literal),*) => {
        concat!(
            "mov rdx, [rcx + ", $at, "]\n",
            row!($r0, $($rest),*),
            "mov [rdi + ", $at, "], ", $r0, "\n",
        )
    };
}

/// A row by the word that makes the lowest word of the sum zero, which goes to RCX plus `$at`; RBP is `neg_inv`.
macro_rules! row_of_reduction {
    ($at:literal, $r0:literal, $($rest:literal),*) => {
        concat!(
            "mov rdx, ", $r0, "\n",
            "imul rdx, rbp\n",
            "mov [rcx + ", $at, "], rdx\n",
            row!($r0, $($rest),*),
        )
    };
}

/// Adds `$word` to the word at RDI plus `$at`, both carries going on.
macro_rules! add_to_memory {
    ($at:literal, $word:literal, $carry:literal) => {
        concat!(
            "adcx ",
            $word,
            ", [rdi + ",
            $at,
            "]\n",
            "adox ",
            $word,
            ", ",
            $carry,
            "\n",
            "mov [rdi + ",
            $at,
            "], ",
            $word,
            "\n",
        )
    };
}

/// Adds the eight words of the sum, and RBP, to the block at RDI plus 64. RBP is what is carried out.
macro_rules! add_high_block {
    ($r0:literal, $r1:literal, $r2:literal, $r3:literal, $r4:literal, $r5:literal, $r6:literal, $r7:literal) => {
        concat!(
            "xor ebx, ebx\n",
            add_to_memory!("64", $r0, "rbp"),
            add_to_memory!("72", $r1, "rbx"),
            add_to_memory!("80", $r2, "rbx"),
            add_to_memory!("88", $r3, "rbx"),
            add_to_memory!("96", $r4, "rbx"),
            add_to_memory!("104", $r5, "rbx"),
            add_to_memory!("112", $r6, "rbx"),
            add_to_memory!("120", $r7, "rbx"),
            "mov ebp, 0\n",
            "adcx rbp, rbx\n",
            "adox rbp, rbx\n",
        )
    };
}

/// Loads the eight words at RDI.
macro_rules! load_sum {
    () => {
        "mov r8, [rdi]
        mov r9, [rdi + 8]
        mov r10, [rdi + 16]
        mov r11, [rdi + 24]
        mov r12, [rdi + 32]
        mov r13, [rdi + 40]
        mov r14, [rdi + 48]
        mov r15, [rdi + 56]"
    };
}

/// What the caller has in registers.
macro_rules! save_registers {
    () => {
        "push rbx
        push rbp
        push r12
        push r13
        push r14
        push r15"
    };
}

/// The same again.
macro_rules! restore_registers {
    () => {
        "pop r15
        pop r14
        pop r13
        pop r12
        pop rbp
        pop rbx"
    };
}

/// To the next block: RBP is carried on. The number of blocks left is on the stack.
macro_rules! next_block {
    () => {
        "add rdi, 64
        add rsi, 64
        sub qword ptr [rsp], 1"
    };
}

/// Adds the block at RCX times the blocks at RSI to the sum at RDI, and RBP with the weight of the second block of the sum.
/// On the stack is the number of blocks, and then what is added with the weight of the last block. RBP is what is carried
/// out.
macro_rules! blocks {
    () => {
        concat!(
            "2:\n",
            load_sum!(),
            "\n",
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
            "cmp qword ptr [rsp], 1\n",
            "jne 3f\n",
            "add rbp, [rsp + 8]\n",
            "3:\n",
            add_high_block!("rax", "r8", "r9", "r10", "r11", "r12", "r13", "r14"),
            next_block!(),
            "\n",
            "jnz 2b\n",
        )
    };
}

/// See `Unit::multiply_add`.
///
/// # Safety
///
/// The processor has MULX, ADCX and ADOX; there are `count` blocks at `a`, at least one, and one more at `sum`.
#[unsafe(naked)]
pub(super) unsafe extern "sysv64" fn multiply_add(
    sum: *mut Block,
    a: *const Block,
    b: &Block,
    count: usize,
) {
    naked_asm!(
        save_registers!(),
        "push 0",
        "push rcx",
        "mov rcx, rdx",
        "xor ebp, ebp",
        blocks!(),
        "add rsp, 16",
        restore_registers!(),
        "ret",
    )
}

/// See `Unit::square_add`.
///
/// # Safety
///
/// The processor has MULX, ADCX and ADOX; there are `count` blocks at `a`, at least one, and one more at `sum`.
#[unsafe(naked)]
pub(super) unsafe extern "sysv64" fn square_add(sum: *mut Block, a: *const Block, count: usize) {
    naked_asm!(
        save_registers!(),
        "push 0",
        "push rdx",
        "mov rcx, rsi",
        // The lowest block, of which each row is shorter than the one before.
        load_sum!(),
        "mov rdx, [rsi + 0]",
        "xor ebx, ebx",
        product!("8", "r9", "r10", "rax"),
        product!("16", "r10", "r11", "rax"),
        product!("24", "r11", "r12", "rax"),
        product!("32", "r12", "r13", "rax"),
        product!("40", "r13", "r14", "rax"),
        product!("48", "r14", "r15", "rax"),
        last_product!("r15", "r8"),
        "mov [rdi + 8], r9",
        "mov [rdi + 16], r10",
        "mov rdx, [rsi + 8]",
        "xor ebx, ebx",
        product!("16", "r11", "r12", "rax"),
        product!("24", "r12", "r13", "rax"),
        product!("32", "r13", "r14", "rax"),
        product!("40", "r14", "r15", "rax"),
        product!("48", "r15", "r8", "rax"),
        last_product!("r8", "r9"),
        "mov [rdi + 24], r11",
        "mov [rdi + 32], r12",
        "mov rdx, [rsi + 16]",
        "xor ebx, ebx",
        product!("24", "r13", "r14", "rax"),
        product!("32", "r14", "r15", "rax"),
        product!("40", "r15", "r8", "rax"),
        product!("48", "r8", "r9", "rax"),
        last_product!("r9", "r10"),
        "mov [rdi + 40], r13",
        "mov [rdi + 48], r14",
        "mov rdx, [rsi + 24]",
        "xor ebx, ebx",
        product!("32", "r15", "r8", "rax"),
        product!("40", "r8", "r9", "rax"),
        product!("48", "r9", "r10", "rax"),
        last_product!("r10", "r11"),
        "mov [rdi + 56], r15",
        "mov rdx, [rsi + 32]",
        "xor ebx, ebx",
        product!("40", "r9", "r10", "rax"),
        product!("48", "r10", "r11", "rax"),
        last_product!("r11", "r12"),
        "mov rdx, [rsi + 40]",
        "xor ebx, ebx",
        product!("48", "r11", "r12", "rax"),
        last_product!("r12", "r13"),
        "mov rdx, [rsi + 48]",
        "xor ebx, ebx",
        last_product!("r13", "r14"),
        "xor r15d, r15d",
        "xor ebp, ebp",
        add_high_block!("r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"),
        next_block!(),
        "jz 4f",
        blocks!(),
        "4:",
        "add rsp, 16",
        restore_registers!(),
        "ret",
    )
}

/// See `Unit::eliminate`.
///
/// # Safety
///
/// The processor has MULX, ADCX and ADOX; there are `count` blocks at `modulus`, at least one, and one more at `sum`.
#[unsafe(naked)]
pub(super) unsafe extern "sysv64" fn eliminate(
    sum: *mut Block,
    modulus: *const Block,
    quotient: &mut Block,
    count: usize,
    neg_inv: u64,
    carry: u64,
) -> u64 {
    naked_asm!(
        save_registers!(),
        "push r9",
        "push rcx",
        "mov rcx, rdx",
        "mov rbp, r8",
        // The lowest block of the modulus makes the quotient.
        load_sum!(),
        row_of_reduction!(
            "0", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "rax"
        ),
        row_of_reduction!(
            "8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "rax", "r8"
        ),
        row_of_reduction!(
            "16", "r10", "r11", "r12", "r13", "r14", "r15", "rax", "r8", "r9"
        ),
        row_of_reduction!(
            "24", "r11", "r12", "r13", "r14", "r15", "rax", "r8", "r9", "r10"
        ),
        row_of_reduction!(
            "32", "r12", "r13", "r14", "r15", "rax", "r8", "r9", "r10", "r11"
        ),
        row_of_reduction!(
            "40", "r13", "r14", "r15", "rax", "r8", "r9", "r10", "r11", "r12"
        ),
        row_of_reduction!(
            "48", "r14", "r15", "rax", "r8", "r9", "r10", "r11", "r12", "r13"
        ),
        row_of_reduction!(
            "56", "r15", "rax", "r8", "r9", "r10", "r11", "r12", "r13", "r14"
        ),
        // A block that is the last one as well takes the carry.
        "xor ebp, ebp",
        "cmp qword ptr [rsp], 1",
        "cmove rbp, [rsp + 8]",
        add_high_block!("rax", "r8", "r9", "r10", "r11", "r12", "r13", "r14"),
        next_block!(),
        "jz 4f",
        blocks!(),
        "4:",
        "mov rax, rbp",
        "add rsp, 16",
        restore_registers!(),
        "ret",
    )
}
