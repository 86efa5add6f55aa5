//! The proof that the processor has the instructions, and the operations on blocks in them. The only unsafe code of the
//! words.
#![allow(unsafe_code)]

use core::arch::naked_asm;
use core::arch::x86_64::{
    __m256i, _mm256_add_epi32, _mm256_and_si256, _mm256_cmpeq_epi32, _mm256_loadu_si256,
    _mm256_or_si256, _mm256_set1_epi32, _mm256_setzero_si256, _mm256_storeu_si256,
};

use super::unit::{Block, Unit};
use super::{blocks, blocks_mut};

/// Can only be had where MULX, ADCX, ADOX and AVX2 can be used.
#[derive(Clone, Copy, Debug)]
pub(in crate::backend) struct Token(());

impl Token {
    /// Asks the processor and the operating system.
    pub(in crate::backend) fn detect() -> Option<Self> {
        let usable = std::is_x86_feature_detected!("bmi2")
            && std::is_x86_feature_detected!("adx")
            && std::is_x86_feature_detected!("avx2");
        usable.then_some(Self(()))
    }

    /// Valgrind has the instructions, whatever the processor has, but does not say so.
    #[cfg(test)]
    pub(in crate::backend) fn under_valgrind() -> Self {
        assert!(crate::backend::memcheck::is_under_valgrind());
        Self(())
    }
}

impl Unit for Token {
    fn multiply_add(self, sum: &mut [Block], a: &[Block], b: &Block) {
        assert!(!a.is_empty() && sum.len() == a.len() + 1);
        // SAFETY: the token proves the instructions; `sum` has a block more than `a`, of which there is one.
        unsafe { multiply_add(sum.as_mut_ptr(), a.as_ptr(), b, a.len()) }
    }

    fn square_add(self, sum: &mut [Block], a: &[Block]) {
        assert!(!a.is_empty() && sum.len() == a.len() + 1);
        // SAFETY: the token proves the instructions; `sum` has a block more than `a`, of which there is one.
        unsafe { square_add(sum.as_mut_ptr(), a.as_ptr(), a.len()) }
    }

    fn eliminate(
        self,
        sum: &mut [Block],
        modulus: &[Block],
        quotient: &mut Block,
        neg_inv: u64,
        carry: u64,
    ) -> u64 {
        assert!(!modulus.is_empty() && sum.len() == modulus.len() + 1);
        let (sum, count) = (sum.as_mut_ptr(), modulus.len());
        // SAFETY: the token proves the instructions; `sum` has a block more than the modulus, of which there is one.
        unsafe { eliminate(sum, modulus.as_ptr(), quotient, count, neg_inv, carry) }
    }

    fn double_and_add_squares(self, sum: &mut [Block], a: &[Block]) {
        assert!(!a.is_empty() && sum.len() == 2 * a.len());
        // SAFETY: the token proves the instructions; `sum` is twice as long as `a`, of which there is a block.
        unsafe { double_and_add_squares(sum.as_mut_ptr(), a.as_ptr(), a.len()) }
    }

    fn subtract(self, out: &mut [Block], a: &[Block], b: &[Block], take: u64) {
        assert!(!a.is_empty() && out.len() == a.len() && b.len() == a.len());
        // SAFETY: the token proves the instructions; all are of one length, of which there is a block.
        unsafe { subtract(out.as_mut_ptr(), a.as_ptr(), take, b.as_ptr(), a.len()) }
    }

    fn select(self, out: &mut [u32], table: &[u32], digit: u8) {
        // SAFETY: the token proves AVX2.
        unsafe { select(out, table, digit) }
    }
}

/// Copies entry `digit` of `table` to `out`, after reading all.
#[target_feature(enable = "avx2")]
fn select(out: &mut [u32], table: &[u32], digit: u8) {
    let (entry_len, digit) = (out.len(), _mm256_set1_epi32(i32::from(digit)));
    let one = _mm256_set1_epi32(1);
    for (i, out) in blocks_mut(out).iter_mut().enumerate() {
        let (mut entry, mut chosen) = (_mm256_setzero_si256(), [_mm256_setzero_si256(); 2]);
        for entry_blocks in table.chunks_exact(entry_len) {
            let block: *const __m256i = blocks(entry_blocks)[i].as_ptr().cast();
            // All ones for the entry that is wanted.
            let mask = _mm256_cmpeq_epi32(entry, digit);
            for (half, chosen) in chosen.iter_mut().enumerate() {
                // SAFETY: a block is two times 32 bytes.
                let half = unsafe { _mm256_loadu_si256(block.add(half)) };
                *chosen = _mm256_or_si256(*chosen, _mm256_and_si256(half, mask));
            }
            entry = _mm256_add_epi32(entry, one);
        }
        for (half, chosen) in chosen.into_iter().enumerate() {
            let out: *mut __m256i = out.as_mut_ptr().cast();
            // SAFETY: a block is two times 32 bytes.
            unsafe { _mm256_storeu_si256(out.add(half), chosen) };
        }
    }
}

// In what follows RSI points to a factor, RDX is a word of the other one, and R8 to R15 and RAX hold words of the sum, RBX
// the low half of a product. ADCX carries low halves on, by the carry flag, and ADOX high ones, by the overflow flag.

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

/// See [`Unit::multiply_add`].
///
/// # Safety
///
/// The processor has MULX, ADCX and ADOX; there are `count` blocks at `a`, at least one, and one more at `sum`.
#[unsafe(naked)]
unsafe extern "sysv64" fn multiply_add(sum: *mut Block, a: *const Block, b: &Block, count: usize) {
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

/// See [`Unit::square_add`].
///
/// # Safety
///
/// The processor has MULX, ADCX and ADOX; there are `count` blocks at `a`, at least one, and one more at `sum`.
#[unsafe(naked)]
unsafe extern "sysv64" fn square_add(sum: *mut Block, a: *const Block, count: usize) {
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

/// See [`Unit::eliminate`].
///
/// # Safety
///
/// The processor has MULX, ADCX and ADOX; there are `count` blocks at `modulus`, at least one, and one more at `sum`.
#[unsafe(naked)]
unsafe extern "sysv64" fn eliminate(
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

/// Doubles two words at RDI plus `$at` and adds the square of the word at RSI plus `$from`.
macro_rules! double_and_add_square {
    ($from:literal, $low:literal, $high:literal) => {
        concat!(
            "mov rdx, [rsi + ",
            $from,
            "]\n",
            "mulx r11, r10, rdx\n",
            "mov rax, [rdi + ",
            $low,
            "]\n",
            "adcx rax, rax\n",
            "adox rax, r10\n",
            "mov [rdi + ",
            $low,
            "], rax\n",
            "mov rax, [rdi + ",
            $high,
            "]\n",
            "adcx rax, rax\n",
            "adox rax, r11\n",
            "mov [rdi + ",
            $high,
            "], rax\n",
        )
    };
}

/// See [`Unit::double_and_add_squares`].
///
/// # Safety
///
/// The processor has MULX, ADCX and ADOX; there are `count` blocks at `a`, at least one, and twice as many at `sum`.
#[unsafe(naked)]
unsafe extern "sysv64" fn double_and_add_squares(sum: *mut Block, a: *const Block, count: usize) {
    naked_asm!(
        "mov rcx, rdx",
        // The carries of doubling and of adding.
        "xor r8d, r8d",
        "xor r9d, r9d",
        "2:",
        "mov r10, -1",
        "xor eax, eax",
        "adcx r8, r10",
        "adox r9, r10",
        double_and_add_square!("0", "0", "8"),
        double_and_add_square!("8", "16", "24"),
        double_and_add_square!("16", "32", "40"),
        double_and_add_square!("24", "48", "56"),
        double_and_add_square!("32", "64", "72"),
        double_and_add_square!("40", "80", "88"),
        double_and_add_square!("48", "96", "104"),
        double_and_add_square!("56", "112", "120"),
        "mov r10d, 0",
        "mov r8d, 0",
        "mov r9d, 0",
        "adcx r8, r10",
        "adox r9, r10",
        "add rsi, 64",
        "add rdi, 128",
        "sub rcx, 1",
        "jnz 2b",
        "ret",
    )
}

/// `out = a - take * b` in the word at `$at`. MULX, since it leaves the borrow alone; RDX is `take`.
macro_rules! subtract_word {
    ($at:literal) => {
        concat!(
            "mulx r10, r9, [rcx + ",
            $at,
            "]\n",
            "mov r11, [rsi + ",
            $at,
            "]\n",
            "sbb r11, r9\n",
            "mov [rdi + ",
            $at,
            "], r11\n",
        )
    };
}

/// See [`Unit::subtract`].
///
/// # Safety
///
/// The processor has MULX; there are `count` blocks at each, at least one.
#[unsafe(naked)]
unsafe extern "sysv64" fn subtract(
    out: *mut Block,
    a: *const Block,
    take: u64,
    b: *const Block,
    count: usize,
) {
    naked_asm!(
        "xor eax, eax",
        "2:",
        subtract_word!("0"),
        subtract_word!("8"),
        subtract_word!("16"),
        subtract_word!("24"),
        subtract_word!("32"),
        subtract_word!("40"),
        subtract_word!("48"),
        subtract_word!("56"),
        // Which leaves the borrow alone.
        "lea rdi, [rdi + 64]",
        "lea rsi, [rsi + 64]",
        "lea rcx, [rcx + 64]",
        "dec r8",
        "jnz 2b",
        "ret",
    )
}
