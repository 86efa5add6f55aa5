//! Products, squares and reduction of numbers in tiles, in assembly.
//!
//! RSI points to one factor, and RDX is a word of the other. R8 to R15 and RAX hold words of the
//! sum, RBX the low half of a product. ADCX carries low halves in the carry flag, and ADOX high
//! halves in the overflow flag.
#![allow(unsafe_code)]

use core::arch::naked_asm;

use super::montgomery::Tile;

/// The name of a macro of the assembler. With link-time optimization, all assembly of a program is
/// one file, and its macros share one space of names.
macro_rules! assembler_name {
    ($name:ident) => {
        concat!("batch_modexp_adx_", stringify!($name))
    };
}

/// Lines of assembly. A name before the text calls one of the macros below.
macro_rules! lines {
    ($($($name:ident)? $($text:literal)?,)*) => {
        concat!($($(assembler_name!($name), " ",)? $($text,)? "\n",)*)
    };
}

macro_rules! define {
    ($($name:ident $parameters:literal [$($lines:tt)*])*) => {
        concat!($(
            ".macro ", assembler_name!($name), " ", $parameters, "\n",
            lines!($($lines)*),
            ".endm\n",
        )*)
    };
}

macro_rules! remove {
    ($($name:ident $parameters:literal [$($lines:tt)*])*) => {
        concat!($(".purgem ", assembler_name!($name), "\n",)*)
    };
}

/// A function in assembly, with the macros below. They are removed at its end: other functions may
/// be in the same file.
macro_rules! assembly {
    ([$($lines:tt)*] $($operand:tt)*) => {
        naked_asm!(macros!(define), lines!($($lines)*), macros!(remove), $($operand)*)
    };
}

macro_rules! macros {
    ($use:ident) => {
        $use! {
            // Adds RDX times the word at RSI plus `at` to `low`, and its high half to `above`, by
            // way of `high`. Adding the high half first makes rows 6 % faster on an Intel Xeon and
            // 1 % slower on a Zen 4.
            product "at, low, above, high" [
                "mulx \\high, rbx, [rsi + \\at]",
                "adox \\above, \\high",
                "adcx \\low, rbx",
            ]
            // The last product of a row. Its high half and the carries form a new word of the sum,
            // `top`.
            last_product "low, top" [
                "mulx \\top, rbx, [rsi + 56]",
                "adcx \\low, rbx",
                "adox \\top, [rsp + 16]",
                "adcx \\top, [rsp + 16]",
            ]
            // Adds RDX times a tile to a sum of eight words, which becomes nine words long. The
            // first instruction clears both carries.
            row "r0, r1, r2, r3, r4, r5, r6, r7, top" [
                "xor ebx, ebx",
                product "0, \\r0, \\r1, \\top",
                product "8, \\r1, \\r2, \\top",
                product "16, \\r2, \\r3, \\top",
                product "24, \\r3, \\r4, \\top",
                product "32, \\r4, \\r5, \\top",
                product "40, \\r5, \\r6, \\top",
                product "48, \\r6, \\r7, \\top",
                last_product "\\r7, \\top",
            ]
            // The rows for the words from RCX plus `at` to the end of a tile. Each completes the
            // lowest word of the sum.
            rows "at, r0, r1, r2, r3, r4, r5, r6, r7, top" [
                "mov rdx, [rcx + \\at]",
                row "\\r0, \\r1, \\r2, \\r3, \\r4, \\r5, \\r6, \\r7, \\top",
                "mov [rdi + \\at], \\r0",
                ".if \\at < 56",
                rows "\\at+8, \\r1, \\r2, \\r3, \\r4, \\r5, \\r6, \\r7, \\top, \\r0",
                ".endif",
            ]
            // The rows for the quotient words that clear the words of the sum from number `at / 8`
            // on.
            //
            // The quotient words go to RCX plus `at` and after it. The low word of `neg_inv` is in
            // RBP, its high word on the stack. Uses RDI. Two quotient words come from two sum words
            // at once, so that only every other row waits for the one before it.
            rows_of_reduction "at, r0, r1, r2, r3, r4, r5, r6, r7, top" [
                "mov rdx, \\r0",
                "mulx rbx, \\top, rbp",
                "imul rdx, [rsp + 24]",
                "mov rdi, \\r1",
                "imul rdi, rbp",
                "mov [rcx + \\at], \\top",
                "add rbx, rdx",
                "add rdi, rbx",
                "mov rdx, \\top",
                "mov [rcx + \\at+8], rdi",
                row "\\r0, \\r1, \\r2, \\r3, \\r4, \\r5, \\r6, \\r7, \\top",
                "mov rdx, rdi",
                row "\\r1, \\r2, \\r3, \\r4, \\r5, \\r6, \\r7, \\top, \\r0",
                ".if \\at < 48",
                rows_of_reduction "\\at+16, \\r2, \\r3, \\r4, \\r5, \\r6, \\r7, \\top, \\r0, \\r1",
                ".endif",
            ]
            // Adds the tile at RDI plus 64 and the carry RBP, 0 or 1, to the sum as eight rows leave
            // it. RBP is then the carry out, 0 or 1. The first instruction sets the carry flag.
            add_next_tile "" [
                "neg rbp",
                "adc rax, [rdi + 64]",
                "adc r8, [rdi + 72]",
                "adc r9, [rdi + 80]",
                "adc r10, [rdi + 88]",
                "adc r11, [rdi + 96]",
                "adc r12, [rdi + 104]",
                "adc r13, [rdi + 112]",
                "adc r14, [rdi + 120]",
                "mov ebp, 0",
                "adc ebp, ebp",
            ]
            // Adds the word at RDI plus `at` and `carry` to `word`, in both carry chains.
            add_word "at, word, carry" [
                "adcx \\word, [rdi + \\at]",
                "adox \\word, \\carry",
            ]
            // Loads the eight words at RDI into the registers of the sum.
            load_sum "" [
                "mov r8, [rdi]",
                "mov r9, [rdi + 8]",
                "mov r10, [rdi + 16]",
                "mov r11, [rdi + 24]",
                "mov r12, [rdi + 32]",
                "mov r13, [rdi + 40]",
                "mov r14, [rdi + 48]",
                "mov r15, [rdi + 56]",
            ]
            // Saves the caller's registers, then pushes the parameters of the kernel.
            //
            // From the top, the stack then has the number of tiles `count`, `carry`, a zero,
            // `high`, and `kind`. The last one tells what to add to the products: 0 nothing, 1 a
            // sum, 2 a sum and `carry`.
            enter_kernel "kind, high, carry, count" [
                ".irp value, rbx, rbp, r12, r13, r14, r15, \\kind, \\high, 0, \\carry, \\count",
                "push \\value",
                ".endr",
            ]
            // Advances to the next tile; RBP keeps the carry.
            next_tile "" [
                "add rdi, 64",
                "add rsi, 64",
                "sub qword ptr [rsp], 1",
            ]
        }
    };
}

/// See `Unit::multiply`.
///
/// # Safety
///
/// The processor has MULX, ADCX and ADOX; there are `count` tiles at `a`, at least one, and one
/// more at `product`.
#[unsafe(naked)]
pub(super) unsafe extern "sysv64" fn multiply(
    product: *mut Tile,
    a: *const Tile,
    b: &Tile,
    count: usize,
) {
    assembly!([
        enter_kernel "0, 0, 0, rcx",
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
    ] sym other_tiles)
}

/// See `Unit::multiply_add`.
///
/// # Safety
///
/// The processor has MULX, ADCX and ADOX; there are `count` tiles at `a`, at least one, and one
/// more at `sum`.
#[unsafe(naked)]
pub(super) unsafe extern "sysv64" fn multiply_add(
    sum: *mut Tile,
    a: *const Tile,
    b: &Tile,
    count: usize,
) {
    assembly!([
        enter_kernel "1, 0, 0, rcx",
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
    ] sym other_tiles)
}

/// See `Unit::square`.
///
/// # Safety
///
/// The processor has MULX, ADCX and ADOX; there are `count` tiles at `a`, at least one, and one
/// more at `product`.
#[unsafe(naked)]
pub(super) unsafe extern "sysv64" fn square(product: *mut Tile, a: *const Tile, count: usize) {
    assembly!([
        enter_kernel "0, 0, 0, rdx",
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
    ] sym triangle)
}

/// See `Unit::square_add`.
///
/// # Safety
///
/// The processor has MULX, ADCX and ADOX; there are `count` tiles at `a`, at least one, and one
/// more at `sum`.
#[unsafe(naked)]
pub(super) unsafe extern "sysv64" fn square_add(sum: *mut Tile, a: *const Tile, count: usize) {
    assembly!([
        enter_kernel "1, 0, 0, rdx",
        "mov rcx, rsi",
        load_sum,
        "mov rdx, [rsi]",
        "xor ebx, ebx",
        product "8, r9, r10, r8",
        product "16, r10, r11, r8",
        product "24, r11, r12, r8",
        product "32, r12, r13, r8",
        product "40, r13, r14, r8",
        product "48, r14, r15, r8",
        last_product "r15, rax",
        "jmp {}",
    ] sym triangle)
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
    assembly!([
        "mov [rdi + 8], r9",
        "mov [rdi + 16], r10",
        "mov rdx, [rsi + 8]",
        "xor ebx, ebx",
        product "16, r11, r12, r9",
        product "24, r12, r13, r9",
        product "32, r13, r14, r9",
        product "40, r14, r15, r9",
        product "48, r15, rax, r9",
        last_product "rax, r8",
        "mov [rdi + 24], r11",
        "mov [rdi + 32], r12",
        "mov rdx, [rsi + 16]",
        "xor ebx, ebx",
        product "24, r13, r14, r10",
        product "32, r14, r15, r10",
        product "40, r15, rax, r10",
        product "48, rax, r8, r10",
        last_product "r8, r9",
        "mov [rdi + 40], r13",
        "mov [rdi + 48], r14",
        "mov rdx, [rsi + 24]",
        "xor ebx, ebx",
        product "32, r15, rax, r11",
        product "40, rax, r8, r11",
        product "48, r8, r9, r11",
        last_product "r9, r10",
        "mov [rdi + 56], r15",
        "mov rdx, [rsi + 32]",
        "xor ebx, ebx",
        product "40, r8, r9, r12",
        product "48, r9, r10, r12",
        last_product "r10, r11",
        "mov rdx, [rsi + 40]",
        "xor ebx, ebx",
        product "48, r10, r11, r13",
        last_product "r11, r12",
        "mov rdx, [rsi + 48]",
        "xor ebx, ebx",
        last_product "r12, r13",
        "xor r14d, r14d",
        "xor ebp, ebp",
        "cmp qword ptr [rsp + 32], 0",
        "je 3f",
        add_next_tile,
        "3:",
        next_tile,
        "jmp {}",
    ] sym other_tiles)
}

/// See `Unit::eliminate`.
///
/// # Safety
///
/// The processor has MULX, ADCX and ADOX; there are `count` tiles at `modulus`, at least one, and
/// one more at `sum`.
#[unsafe(naked)]
pub(super) unsafe extern "sysv64" fn eliminate(
    sum: *mut Tile,
    modulus: *const Tile,
    count: usize,
    neg_inv_low: u64,
    neg_inv_high: u64,
    carry: u64,
) -> u64 {
    assembly!([
        enter_kernel "2, r8, r9, rdx",
        "mov rbp, rcx",
        "mov rcx, rdi",
        // The lowest tile of the modulus gives the quotient, which replaces the lowest tile of the
        // sum.
        load_sum,
        rows_of_reduction "0, r8, r9, r10, r11, r12, r13, r14, r15, rax",
        "mov rdi, rcx",
        // If this is also the last tile, it takes the carry.
        "xor ebp, ebp",
        "cmp qword ptr [rsp], 1",
        "cmove rbp, [rsp + 8]",
        add_next_tile,
        next_tile,
        "jmp {}",
    ] sym other_tiles)
}

/// The common end of kernels over several tiles, which begin with `enter_kernel`.
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
    assembly!([
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
        rows "0, r8, r9, r10, r11, r12, r13, r14, r15, rax",
        "cmp qword ptr [rsp], 1",
        "je 5f",
        "cmp qword ptr [rsp + 32], 0",
        "je 3f",
        add_next_tile,
        "3:",
        next_tile,
        "jmp 2b",
        // The last tile.
        "5:",
        "cmp qword ptr [rsp + 32], 1",
        "jb 7f",
        "ja 6f",
        add_next_tile,
        "jmp 7f",
        "6:",
        // Adds the last tile, and the carry on the stack too.
        "add rbp, [rsp + 8]",
        "xor ebx, ebx",
        add_word "64, rax, rbp",
        add_word "72, r8, rbx",
        add_word "80, r9, rbx",
        add_word "88, r10, rbx",
        add_word "96, r11, rbx",
        add_word "104, r12, rbx",
        add_word "112, r13, rbx",
        add_word "120, r14, rbx",
        "mov ebp, 0",
        "adcx rbp, rbx",
        "adox rbp, rbx",
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
    ])
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
        ".irp at, 0, 8, 16, 24, 32, 40, 48, 56",
        "mov rdx, [rsi + \\at]",
        "mulx r11, r10, rdx",
        "mov rax, [rdi + 2*\\at]",
        "adcx rax, rax",
        "adox rax, r10",
        "mov [rdi + 2*\\at], rax",
        "mov rax, [rdi + 2*\\at + 8]",
        "adcx rax, rax",
        "adox rax, r11",
        "mov [rdi + 2*\\at + 8], rax",
        ".endr",
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

/// See `Unit::subtract`. RDX is a mask, all ones if `b` is to be subtracted; RAX is 0, or -1 for a
/// borrow.
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
        // Four words at a time.
        ".irp at, 0, 32",
        "mov r9, rdx",
        "and r9, [rcx + \\at]",
        "mov r10, rdx",
        "and r10, [rcx + \\at + 8]",
        "mov r11, rdx",
        "and r11, [rcx + \\at + 16]",
        "mov rbx, rdx",
        "and rbx, [rcx + \\at + 24]",
        "neg rax",
        "mov rax, [rsi + \\at]",
        "sbb rax, r9",
        "mov [rdi + \\at], rax",
        "mov rax, [rsi + \\at + 8]",
        "sbb rax, r10",
        "mov [rdi + \\at + 8], rax",
        "mov rax, [rsi + \\at + 16]",
        "sbb rax, r11",
        "mov [rdi + \\at + 16], rax",
        "mov rax, [rsi + \\at + 24]",
        "sbb rax, rbx",
        "mov [rdi + \\at + 24], rax",
        "sbb rax, rax",
        ".endr",
        "add rdi, 64",
        "add rsi, 64",
        "add rcx, 64",
        "sub r8, 1",
        "jnz 2b",
        "pop rbx",
        "ret",
    )
}
