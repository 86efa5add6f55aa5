//! Single passes over whole numbers, in assembly.

use core::arch::naked_asm;

use crate::adx::montgomery::Tile;

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

/// See `Unit::double_and_add_squares`.
///
/// # Safety
///
/// The processor has MULX, ADCX and ADOX. There are `count` tiles at `a`, at least one, and twice
/// as many at `sum`.
#[unsafe(naked)]
pub(super) unsafe extern "sysv64" fn double_and_add_squares(
    sum: *mut Tile,
    a: *const Tile,
    count: usize,
) {
    naked_asm!(
        "mov rcx, rdx",
        // The carries of the doubling and of the addition.
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

/// `out = a - $masked - borrow` in the word at `$at`.
macro_rules! subtract_word {
    ($at:literal, $masked:literal) => {
        concat!(
            "mov rax, [rsi + ",
            $at,
            "]\n",
            "sbb rax, ",
            $masked,
            "\n",
            "mov [rdi + ",
            $at,
            "], rax\n",
        )
    };
}

/// Subtracts in four words those at RCX where the mask RDX is all ones, and the borrow. RAX is 0,
/// or -1 for a borrow.
macro_rules! subtract_words {
    ($at0:literal, $at1:literal, $at2:literal, $at3:literal) => {
        concat!(
            "mov r9, rdx\n",
            "and r9, [rcx + ",
            $at0,
            "]\n",
            "mov r10, rdx\n",
            "and r10, [rcx + ",
            $at1,
            "]\n",
            "mov r11, rdx\n",
            "and r11, [rcx + ",
            $at2,
            "]\n",
            "mov rbx, rdx\n",
            "and rbx, [rcx + ",
            $at3,
            "]\n",
            "neg rax\n",
            subtract_word!($at0, "r9"),
            subtract_word!($at1, "r10"),
            subtract_word!($at2, "r11"),
            subtract_word!($at3, "rbx"),
            "sbb rax, rax\n",
        )
    };
}

/// See `Unit::subtract`.
///
/// # Safety
///
/// There are `count` tiles at each, at least one.
#[unsafe(naked)]
pub(super) unsafe extern "sysv64" fn subtract(
    out: *mut Tile,
    a: *const Tile,
    take: u64,
    b: *const Tile,
    count: usize,
) {
    naked_asm!(
        "push rbx",
        "neg rdx",
        "xor eax, eax",
        "2:",
        subtract_words!("0", "8", "16", "24"),
        subtract_words!("32", "40", "48", "56"),
        "add rdi, 64",
        "add rsi, 64",
        "add rcx, 64",
        "sub r8, 1",
        "jnz 2b",
        "pop rbx",
        "ret",
    )
}
