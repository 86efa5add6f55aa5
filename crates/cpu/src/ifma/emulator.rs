//! An emulator of AVX-IFMA for processors without it. It executes the multiply-adds of the shipped
//! machine code one by one.
//!
//! An unknown instruction interrupts the program with SIGILL. The handler applies the two
//! multiply-adds to the registers that the kernel saved, as Intel's manual defines them (*Intel 64
//! and IA-32 Architectures Software Developer's Manual*, volume 2, VPMADD52LUQ and VPMADD52HUQ,
//! VEX.256.66.0F38.W1 B4 and B5). It then continues after the instruction. This tests the encoding
//! too: any other unknown instruction ends the process.
#![allow(unsafe_code)]

use core::ffi::{c_int, c_void};
use core::{mem, ptr};
use std::sync::Once;

use super::madd52::RADIX_BITS;

/// Octets of the instruction with three register operands.
const LENGTH: usize = 5;

/// The offset of the lower halves of the registers in the saved state. The next constants are the
/// offsets of the flags for the components in use and of the upper halves (same manual, volume 1,
/// sections 13.4 and 13.5.3).
const LOWER: usize = 160;
const IN_USE: usize = 512;
const UPPER: usize = 576;

/// The flags for the lower and the upper halves. A component that is not in use is zero.
const LOWER_IN_USE: u64 = 1 << 1;
const UPPER_IN_USE: u64 = 1 << 2;

/// Makes the instructions available to this process.
pub(super) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // SAFETY: all zeros are a valid action; the handler takes three arguments, as the flag
        // says.
        let result = unsafe {
            let mut action: libc::sigaction = mem::zeroed();
            action.sa_sigaction = handle as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigaction(libc::SIGILL, &action, ptr::null_mut())
        };
        assert_eq!(result, 0);
    });
}

/// A multiply-add with register operands.
#[derive(Debug, Eq, PartialEq)]
struct Madd {
    high: bool,
    sum: usize,
    factors: [usize; 2],
}

impl Madd {
    fn decode([vex, first, second, opcode, operands]: [u8; LENGTH]) -> Option<Self> {
        // A three-octet VEX prefix; opcode map 0F 38; W1, 256 bits and prefix 66; register operands
        // only.
        let is_one = vex == 0xc4
            && first & 0x1f == 2
            && second & 0x87 == 0x85
            && opcode & !1 == 0xb4
            && operands >> 6 == 3;
        let register =
            |low: u8, inverted_high: u8| usize::from(low & 7 | (!inverted_high & 1) << 3);
        is_one.then(|| Self {
            high: opcode & 1 == 1,
            sum: register(operands >> 3, first >> 7),
            factors: [
                usize::from(!(second >> 3) & 15),
                register(operands, first >> 5),
            ],
        })
    }

    fn compute(&self, sum: u64, [a, b]: [u64; 2]) -> u64 {
        const MASK: u64 = (1 << RADIX_BITS) - 1;
        let product = u128::from(a & MASK) * u128::from(b & MASK);
        sum.wrapping_add(match self.high {
            true => (product >> RADIX_BITS) as u64,
            false => product as u64 & MASK,
        })
    }
}

extern "C" fn handle(signal: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a context of the interrupted thread, which has no other user
    // meanwhile. The octets that are read exist, because compiled code does not end so soon after
    // the instruction. The saved state has the upper halves at their offset, for a processor that
    // has AVX.
    unsafe {
        let context = &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext;
        let pointer = &mut context.gregs[libc::REG_RIP as usize];
        let instruction = ptr::read_unaligned(*pointer as *const [u8; LENGTH]);
        let Some(madd) = Madd::decode(instruction) else {
            // Executed a second time, the instruction ends the process.
            libc::signal(signal, libc::SIG_DFL);
            return;
        };
        *pointer += LENGTH as i64;

        let state = context.fpregs.cast::<u8>();
        let in_use = state.add(IN_USE).cast::<u64>();
        for (half, bit) in [(LOWER, LOWER_IN_USE), (UPPER, UPPER_IN_USE)] {
            let registers = state.add(half).cast::<[u64; 2]>();
            if *in_use & bit == 0 {
                ptr::write_bytes(registers, 0, 16);
                *in_use |= bit;
            }
            let [sum, a, b] = [madd.sum, madd.factors[0], madd.factors[1]];
            for lane in 0..2 {
                let factors = [a, b].map(|register| (*registers.add(register))[lane]);
                let sum = &mut (*registers.add(sum))[lane];
                *sum = madd.compute(*sum, factors);
            }
        }
    }
}

/// Compares with the encodings of GNU as: `{vex} vpmadd52luq ymm2, ymm1, ymm0` and `{vex}
/// vpmadd52huq ymm9, ymm14, ymm12`. Other instructions are refused.
#[test]
fn encodings() {
    let madd = |high, sum, factors| Some(Madd { high, sum, factors });
    let low = [0xc4, 0xe2, 0xf5, 0xb4, 0xd0];
    assert_eq!(Madd::decode(low), madd(false, 2, [1, 0]));
    let high = [0xc4, 0x42, 0x8d, 0xb5, 0xcc];
    assert_eq!(Madd::decode(high), madd(true, 9, [14, 12]));
    // 128 bits, an operand in memory, a multiply-add of doubles.
    for other in [
        [0xc4, 0xe2, 0xf1, 0xb4, 0xd0],
        [0xc4, 0xe2, 0xf5, 0xb4, 0x10],
        [0xc4, 0xe2, 0xf5, 0xb8, 0xd0],
    ] {
        assert_eq!(Madd::decode(other), None);
    }
}
